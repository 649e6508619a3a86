// Draws the chart of the usage page from the page's own tables, so that chart and
// figures cannot disagree. All that it can do is in the tables as links, too.
const place = document.getElementById("chart");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");
const paper = matchMedia("print");
const patterns = [
  { symbol: "rect", rotation: -Math.PI / 4, dashArrayX: [1, 0], dashArrayY: [2, 5] },
  { symbol: "rect", rotation: Math.PI / 4, dashArrayX: [1, 0], dashArrayY: [2, 5] },
  { symbol: "rect", rotation: 0, dashArrayX: [1, 0], dashArrayY: [2, 5] },
  { symbol: "circle", symbolSize: 0.8, dashArrayX: [[7, 7], [0, 7, 7, 0]], dashArrayY: [5, 0] },
];

// readSeries reads a series for each line of the first table.
function readSeries() {
  return [...document.querySelectorAll("#usage tbody tr")].map((row, i) => ({
    id: String(i),
    name: row.querySelector(".into").textContent,
    colour: row.dataset.colour,
    pattern: Number(row.dataset.pattern),
    address: row.querySelector("a.into")?.href,
    swatch: row.querySelector(".swatch"),
    hidden: false,
  }));
}

// readSteps reads the points of time of the second table.
function readSteps() {
  return [...document.querySelectorAll("#steps tbody tr")].map((row) => ({
    label: row.dataset.name,
    partial: row.dataset.partial === "true",
    address: row.querySelector("a")?.href,
    values: [...row.querySelectorAll("td[data-value]")].map((cell) => (cell.dataset.value === "" ? null : Number(cell.dataset.value))),
    texts: [...row.querySelectorAll("td")].map((cell) => cell.textContent),
  }));
}

// hatched marks what is not a whole interval.
const hatched = { symbol: "rect", rotation: Math.PI / 4, dashArrayX: [1, 0], dashArrayY: [3, 3], color: "rgba(255,255,255,.85)" };

function decal(pattern) {
  if (pattern === 0) return { symbol: "none" };
  return { ...patterns[(pattern - 1) % patterns.length], color: "rgba(255,255,255,.55)" };
}

// dash and mark tell lines apart without their colours.
function dash(place) {
  return ["solid", "dashed", "dotted", [8, 3, 2, 3], [12, 4]][place % 5];
}

function mark(place) {
  return ["circle", "rect", "triangle", "diamond"][place % 4];
}

class Chart {
  constructor(library) {
    this.kind = place.dataset.kind;
    this.stack = place.dataset.stack === "true";
    this.series = readSeries();
    this.steps = readSteps();
    this.library = library;
    this.chart = library.init(place, null, { renderer: "canvas" });
    this.chart.on("finished", () => place.setAttribute("data-ready", "true"));
    this.chart.on("click", (event) => this.drill(event));
    this.tip = this.box("tip");
    this.line = this.box("line");
    this.brush = this.box("brush");
    this.legend();
    this.draw();
    this.listen();
    this.take();
  }

  box(name) {
    const box = document.createElement("div");
    box.className = name;
    box.hidden = true;
    box.setAttribute("aria-hidden", "true");
    place.append(box);
    return box;
  }

  draw() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const font = { color: colour("--dim"), fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 12 };
    const short = new Intl.NumberFormat("en", place.dataset.percent ? { style: "percent" } : { notation: "compact", maximumFractionDigits: 1 });
    this.chart.setOption({
      animation: !calm.matches,
      animationDuration: 300,
      aria: { enabled: true, label: { enabled: false }, decal: { show: true, decals: [{ symbol: "none" }] } },
      grid: { left: 8, right: 14, top: 30, bottom: 8, containLabel: true },
      xAxis: {
        type: "category", data: this.steps.map((s) => s.label), boundaryGap: this.kind !== "lines",
        axisLabel: { ...font, lineHeight: 15, hideOverlap: true, formatter: this.shorten() }, axisTick: { show: false }, axisLine: { lineStyle: { color: colour("--line") } },
      },
      yAxis: {
        type: "value", min: 0, ...(place.dataset.percent ? this.percents() : {}), name: place.dataset.axis, nameTextStyle: { ...font, align: "left" }, nameGap: 14,
        axisLabel: { ...font, formatter: (v) => short.format(v) }, splitLine: { lineStyle: { color: colour("--line") } },
      },
      series: this.series.filter((s) => !s.hidden).map((s) => this.option(s, colour("--card"))),
    }, { replaceMerge: ["series"] });
  }

  // percents is an axis from 0 to 100 per cent, or as far beyond as the values are.
  percents() {
    const most = Math.max(1, ...this.series.flatMap((s) => s.hidden ? [] : this.steps.map((step) => step.values[Number(s.id)] ?? 0)));
    const interval = most <= 2 ? 0.2 : 10 ** Math.ceil(Math.log10(most / 6));
    return { max: Math.ceil(most / interval - 1e-9) * interval, interval };
  }

  // shorten leaves out what all labels begin with, and says which are partial.
  shorten() {
    const labels = this.steps.map((s) => s.label);
    const same = (length) => labels.length > 1 && labels.every((l) => l.length > length && l.slice(0, length) === labels[0].slice(0, length));
    const cut = [11, 5].find((length) => /^\d{4}-\d\d-\d\d/.test(labels[0] ?? "") && same(length)) ?? 0;
    return (label, i) => label.slice(cut) + (this.steps[i]?.partial ? "\npartial" : "");
  }

  option(s, card) {
    const data = this.data(Number(s.id));
    // A click on a line tells the name of its series only, so that is its number here.
    const pale = { opacity: 0.3 };
    const both = {
      id: s.id, name: s.id, data, color: s.colour, itemStyle: { color: s.colour, decal: decal(s.pattern) }, stack: this.stack ? "all" : undefined,
      cursor: s.address ? "pointer" : "default", emphasis: { focus: "series" }, blur: { itemStyle: pale, areaStyle: pale, lineStyle: pale },
    };
    if (this.kind === "bars") {
      const border = { borderColor: card, borderWidth: this.steps.length > 60 ? 0 : 0.5 };
      return { ...both, type: "bar", barMaxWidth: 42, barCategoryGap: "18%", itemStyle: { ...both.itemStyle, ...border } };
    }
    if (this.kind === "steps") return { ...both, type: "bar", barCategoryGap: "0%" };
    return {
      ...both, type: "line", symbol: mark(Number(s.id)), symbolSize: 6, showAllSymbol: "auto", triggerLineEvent: true, connectNulls: false, lineStyle: { width: 2.5, color: s.colour, type: dash(Number(s.id)) },
    };
  }

  // data are the values of a series. A part of an interval looks like less of it, so lines
  // end before it, and bars and steps of it are hatched.
  data(series) {
    const lines = this.kind === "lines", all = this.steps.every((step) => step.partial);
    return this.steps.map((step) => {
      const value = step.values[series];
      if (!step.partial || value === null) return value;
      if (lines) return all ? value : null;
      return { value, itemStyle: { opacity: 0.6, decal: hatched } };
    });
  }

  legend() {
    const list = document.getElementById("legend");
    list.replaceChildren(...this.series.map((s) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(s.swatch.cloneNode(true), s.name);
      button.addEventListener("click", () => {
        this.chart.dispatchAction({ type: "downplay", seriesName: this.series.map((each) => each.id) });
        s.hidden = !s.hidden;
        button.setAttribute("aria-pressed", String(!s.hidden));
        this.draw();
      });
      const light = (type) => () => s.hidden || this.chart.dispatchAction({ type, seriesName: s.id });
      button.addEventListener("mouseenter", light("highlight"));
      button.addEventListener("mouseleave", light("downplay"));
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
  }

  // take puts a button that saves the chart beside the links to its figures.
  take() {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.id = "png";
    button.textContent = "PNG";
    button.setAttribute("aria-label", "Save the chart as PNG");
    button.addEventListener("click", () => this.picture().toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = "usage.png";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    }));
    document.querySelector(".figures .take").append(button);
  }

  // picture is the chart with its title and the names of its series, in the colours of the page.
  picture() {
    const scale = 2, row = 22, left = 12;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const chart = this.chart.renderToCanvas({ pixelRatio: scale, backgroundColor: colour("--card") });
    const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
    const font = `13px ${getComputedStyle(document.body).fontFamily}`;
    pen.font = font;
    const width = chart.width / scale, names = [];
    let x = left, y = 0;
    for (const s of this.series.filter((each) => !each.hidden)) {
      const wide = pen.measureText(s.name).width + 40;
      if (x > left && x + wide > width) [x, y] = [left, y + row];
      names.push({ s, x, y });
      x += wide;
    }
    const top = 30, below = top + chart.height / scale + row;
    [canvas.width, canvas.height] = [width * scale, (below + y + row) * scale];
    pen.fillStyle = colour("--card");
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(chart, 0, top * scale);
    pen.scale(scale, scale);
    pen.font = font;
    pen.fillStyle = colour("--ink");
    pen.fillText(document.querySelector(".what").textContent.trim().replaceAll(/\s+/g, " "), left, 20);
    for (const { s, x, y } of names) this.sample(pen, s, x, below + y, colour("--ink"));
    return canvas;
  }

  // sample draws a series' swatch and name.
  sample(pen, s, x, y, ink) {
    pen.fillStyle = s.colour;
    pen.fillRect(x, y - 11, 12, 12);
    const path = s.swatch.querySelector("path");
    if (path) {
      pen.save();
      pen.translate(x, y - 11);
      pen.beginPath();
      pen.rect(0, 0, 12, 12);
      pen.clip();
      pen.strokeStyle = "rgba(255,255,255,.8)";
      pen.lineWidth = 1.6;
      pen.stroke(new Path2D(path.getAttribute("d")));
      pen.restore();
    }
    pen.fillStyle = ink;
    pen.fillText(s.name, x + 18, y);
  }

  // drill looks into the group that was clicked on.
  drill(event) {
    if (this.dragged || event.seriesName === undefined) return;
    const address = this.series[Number(event.seriesName)]?.address;
    if (address) location.assign(address);
  }

  // at is the step at a place, and where it is.
  at(event) {
    const x = event.clientX - place.getBoundingClientRect().left;
    const y = event.clientY - place.getBoundingClientRect().top;
    const step = Math.round(this.chart.convertFromPixel({ xAxisIndex: 0 }, x));
    return { x, y, step: Math.max(0, Math.min(this.steps.length - 1, step)), inside: this.chart.containPixel({ gridIndex: 0 }, [x, y]) };
  }

  listen() {
    place.addEventListener("pointermove", (event) => this.move(event));
    place.addEventListener("pointerleave", () => this.leave());
    place.addEventListener("pointerdown", (event) => this.press(event));
    addEventListener("pointerup", (event) => this.release(event));
    addEventListener("keydown", (event) => { if (event.key === "Escape") this.cancel(); });
    dark.addEventListener("change", () => this.draw());
    paper.addEventListener("change", () => this.draw());
    calm.addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.chart.resize()).observe(place);
  }

  press(event) {
    this.dragged = false;
    const at = this.at(event);
    if (event.button !== 0 || event.pointerType === "touch" || !at.inside || this.steps.length < 2) return;
    this.from = at;
  }

  move(event) {
    const at = this.at(event);
    if (this.from) return this.mark(at);
    if (!at.inside) return this.leave();
    this.explain(at);
  }

  // mark shows what a drag would zoom to.
  mark(at) {
    if (!this.dragged && Math.abs(at.x - this.from.x) < 6) return;
    this.dragged = true;
    this.leave();
    const [left, right] = [Math.min(at.x, this.from.x), Math.max(at.x, this.from.x)];
    this.brush.hidden = false;
    this.brush.style.left = `${left}px`;
    this.brush.style.width = `${right - left}px`;
  }

  release(event) {
    if (!this.from) return;
    const [a, b] = [this.from.step, this.at(event).step];
    const dragged = this.dragged;
    this.cancel();
    this.dragged = dragged; // the click that follows is none
    if (dragged) this.zoom(Math.min(a, b), Math.max(a, b));
  }

  cancel() {
    this.from = undefined;
    this.brush.hidden = true;
    this.leave();
  }

  // zoom opens the page from the first to the last of some steps.
  zoom(first, last) {
    const [a, b] = [this.steps[first].address, this.steps[last].address];
    if (!a || !b) return;
    const address = new URL(a);
    address.searchParams.set("to", new URL(b).searchParams.get("to"));
    location.assign(address);
  }

  leave() {
    this.tip.hidden = true;
    this.line.hidden = true;
  }

  // explain shows the figures of a step beside the pointer.
  explain({ x, y, step }) {
    if (this.shown !== step || this.tip.hidden) this.tip.replaceChildren(...this.words(step));
    this.shown = step;
    this.tip.hidden = this.line.hidden = false;
    this.line.style.left = `${this.chart.convertToPixel({ xAxisIndex: 0 }, step)}px`;
    const left = x + this.tip.offsetWidth + 24 > place.clientWidth ? x - this.tip.offsetWidth - 14 : x + 14;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${Math.max(0, Math.min(y, place.clientHeight - this.tip.offsetHeight))}px`;
  }

  words(step) {
    const { label, partial, values, texts } = this.steps[step];
    const line = (swatch, name, text, kind) => {
      const p = document.createElement("p");
      if (swatch) p.append(swatch.cloneNode(true));
      const b = document.createElement("b");
      b.textContent = text;
      const span = document.createElement("span");
      span.textContent = name;
      p.append(span, b);
      if (kind) p.className = kind;
      return p;
    };
    const some = this.series.map((s, i) => ({ s, i })).filter(({ s, i }) => !s.hidden && values[i]);
    const lines = some.slice(0, 12).map(({ s, i }) => line(s.swatch, s.name, texts[i]));
    const sum = texts.length > values.length ? [line(null, "Total", texts.at(-1), "sum")] : [];
    return [line(null, partial ? `${label}, partial` : label, place.dataset.unit, "head"), ...lines, ...sum];
  }
}

async function begin() {
  await import(place.dataset.library); // it puts itself into globalThis
  new Chart(globalThis.echarts);
}

if (place) {
  begin().catch((error) => {
    place.hidden = true; // the tables say everything
    console.error(error);
  });
}
