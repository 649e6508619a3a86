// Renews the content of the page while someone looks at it, and leaves alone what the
// reader does: what is focused or selected, and which details are open.
const main = document.querySelector("main[data-refresh]");
const every = Number(main?.dataset.refresh ?? 0) * 1000;

// keep opens in the new content what is open in the old one, and closes what is closed.
function keep(content) {
  for (const old of main.querySelectorAll("details[id]")) {
    const now = content.querySelector("#" + CSS.escape(old.id));
    if (now) now.open = old.open;
  }
}

async function renew() {
  if (document.hidden || main.contains(document.activeElement) || String(getSelection())) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (main.contains(document.activeElement) || String(getSelection())) return;
  const content = page.querySelector("main");
  keep(content);
  const left = new Map([...main.querySelectorAll("pre")].map((e, i) => [i, e.scrollTop]));
  main.replaceChildren(...content.childNodes);
  main.querySelectorAll("pre").forEach((e, i) => { e.scrollTop = left.get(i) ?? 0; });
  document.querySelector("footer").replaceChildren(...page.querySelector("footer").childNodes);
}

if (every > 0) setInterval(() => renew().catch(() => {}), every);
