// What a page gains by a script: forms that apply when a choice changes, and charts that
// can be saved.
for (const form of document.querySelectorAll("form[data-apply]")) {
  form.addEventListener("change", (e) => {
    if (e.target.name === "window" && e.target.value === "") return; // the times come next
    if (e.target.name === "where" && e.target.value.endsWith("=")) return; // the value comes next
    if (e.target.matches("select, input[list], input[type=date]") && form.reportValidity()) form.requestSubmit();
  });
}

// drawing is a chart as a file of its own: with the colours of paper.
function drawing(svg) {
  const copy = svg.cloneNode(true);
  const { width, height } = svg.viewBox.baseVal;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("color", "#1a1a1a");
  copy.setAttribute("fill", "currentColor");
  copy.setAttribute("font-family", "system-ui, sans-serif");
  copy.setAttribute("font-size", "10");
  for (const line of copy.querySelectorAll(".grid")) line.setAttribute("stroke", "#d0d0d0");
  for (const text of copy.querySelectorAll(".figure")) text.setAttribute("font-size", "8");
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  paper.setAttribute("width", width);
  paper.setAttribute("height", height);
  paper.setAttribute("fill", "#fff");
  copy.prepend(paper);
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function raster(svg) {
  const picture = new Image();
  picture.src = URL.createObjectURL(drawing(svg));
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = picture.width * 2;
  canvas.height = picture.height * 2;
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(picture.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function button(text, what, press) {
  const b = document.createElement("button");
  b.type = "button";
  b.className = "quiet";
  b.textContent = text;
  b.setAttribute("aria-label", `Save ${what} as ${text}`);
  b.addEventListener("click", press);
  return b;
}

for (const box of document.querySelectorAll(".chart")) {
  const svg = box.querySelector("svg");
  if (!svg) continue;
  const what = svg.getAttribute("aria-label");
  const name = what.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const row = document.createElement("p");
  row.className = "take";
  row.append(button("SVG", what, () => save(drawing(svg), name + ".svg")), button("PNG", what, async () => save(await raster(svg), name + ".png")));
  box.after(row);
}
