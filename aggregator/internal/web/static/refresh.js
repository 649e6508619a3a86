// Renews the content of the page while someone looks at it, and leaves alone what the
// reader does: what is focused, selected or typed, and which details are open.
const main = document.querySelector("main[data-refresh]");
const every = Number(main?.dataset.refresh ?? 0) * 1000;

// keep opens in the new content what is open in the old one, and closes what is closed.
function keep(content) {
  for (const old of main.querySelectorAll("details[id]")) {
    const now = content.querySelector("#" + CSS.escape(old.id));
    if (now) now.open = old.open;
  }
}

// typed reports whether a field of a form says something else than the page came with.
function typed() {
  return [...main.querySelectorAll("input, textarea, select")].some((field) => {
    if (field.matches("select")) return field.selectedIndex !== Math.max(0, [...field.options].findIndex((o) => o.defaultSelected));
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
    return field.value !== field.defaultValue;
  });
}

// busy reports whether somebody does something with the page.
function busy() {
  return document.hidden || main.contains(document.activeElement) || String(getSelection()) !== "" || typed();
}

async function renew() {
  if (busy()) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (busy()) return;
  const content = page.querySelector("main");
  keep(content);
  const left = new Map([...main.querySelectorAll("pre")].map((e, i) => [i, e.scrollTop]));
  main.replaceChildren(...content.childNodes);
  main.querySelectorAll("pre").forEach((e, i) => { e.scrollTop = left.get(i) ?? 0; });
  document.querySelector("footer").replaceChildren(...page.querySelector("footer").childNodes);
}

if (every > 0) setInterval(() => renew().catch(() => {}), every);
