// Filters the records while somebody types: the page is asked for with what the form
// says, and its table takes the place of the one that is there.
const form = document.querySelector("#records-filter");
const found = document.querySelector("#found");
const said = document.querySelector("#found-count");
const pause = 300; // ms without a key
let timer = 0;
let running = new AbortController();

function address() {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value.trim()) query.append(name, value);
  const text = query.toString();
  return form.getAttribute("action") + (text ? "?" + text : "");
}

async function filter() {
  running.abort();
  running = new AbortController();
  found.setAttribute("aria-busy", "true");
  const target = address();
  const { signal } = running;
  let answer, page;
  try {
    answer = await fetch(target, { headers: { Accept: "text/html" }, signal });
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } finally {
    if (!signal.aborted) found.removeAttribute("aria-busy"); // otherwise a later one is under way
  }
  document.querySelector("main > .problem")?.remove();
  const problem = page.querySelector("main > .problem");
  said.classList.toggle("problem", problem !== null);
  said.textContent = (problem ?? page.querySelector("#found-count"))?.textContent ?? "The cluster cannot answer now.";
  if (problem !== null || !answer.ok) return;
  for (const list of form.querySelectorAll("datalist")) list.remove(); // what is offered follows the key that is typed
  form.append(...page.querySelectorAll("#records-filter datalist"));
  found.replaceChildren(...page.querySelector("#found").childNodes);
  history.replaceState(null, "", target);
}

function soon(wait) {
  clearTimeout(timer);
  timer = setTimeout(() => filter().catch((e) => {
    if (e.name !== "AbortError") said.textContent = "The cluster cannot be asked now.";
  }), wait);
}

form.addEventListener("input", () => soon(pause));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  soon(0);
});
