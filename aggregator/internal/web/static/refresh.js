// Renews the content of the page while someone looks at it.
const main = document.querySelector("main[data-refresh]");
const every = Number(main?.dataset.refresh ?? 0) * 1000;

async function renew() {
  if (document.hidden || main.contains(document.activeElement) || String(getSelection())) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  main.replaceChildren(...page.querySelector("main").childNodes);
  document.querySelector("footer").replaceChildren(...page.querySelector("footer").childNodes);
}

if (every > 0) setInterval(() => renew().catch(() => {}), every);
