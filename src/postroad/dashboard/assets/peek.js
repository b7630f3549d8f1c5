/* The peek: what became of a message, beside the list, while the focus stays on its row. Space or the button of a row
   opens it, the arrows step, Escape closes it. Its parts are those of the page of the message. */
"use strict";
(function () {
  const wide = window.matchMedia("(min-width: 76rem)");
  /* The address of the message that is shown. */
  let shown = null;
  let request = null;

  const panel = () => document.getElementById("peek");
  const links = () => [...document.querySelectorAll("#results a.row-link")];
  const linkOf = (address) => links().find((link) => link.href === address);
  const isTyping = () => document.activeElement.matches("input, select, textarea") || document.querySelector("dialog[open]");

  function heading(link, page) {
    const title = document.createElement("h2");
    title.textContent = link.title;
    const about = page.querySelector("#head .top > div");
    const subject = document.createElement("p");
    subject.textContent = about.querySelector("h1").textContent;
    about.querySelector("h1").replaceWith(subject);
    return [title, ...about.children];
  }

  async function load(link) {
    request?.abort();
    const mine = request = new AbortController();
    const answer = await fetch(link.href, { headers: { "Accept": "text/html", "X-Refreshed": "page" }, signal: mine.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const parts = page.querySelectorAll(".outcome, #timeline");
    /* The session may have ended: its page says so. */
    if (!answer.ok || !parts.length) { location.assign(link.href); return; }
    parts.forEach((part) => [part, ...part.querySelectorAll("[data-live]")].forEach((one) => one.removeAttribute("data-live")));
    const [head, body] = ["[data-peek-head]", "[data-peek-body]"].map((name) => panel().querySelector(name));
    head.replaceChildren(...heading(link, page));
    body.replaceChildren(...parts);
    window.postroad.prepare(body);
  }

  /* The row, because live.js compares what is in it. */
  function mark(link) {
    document.querySelectorAll("#results tr[aria-current]").forEach((row) => { row.removeAttribute("aria-current"); });
    link?.closest("tr").setAttribute("aria-current", "true");
  }

  function show(link) {
    const isNew = shown !== link.href;
    shown = link.href;
    panel().hidden = false;
    panel().querySelectorAll("[data-peek-link]").forEach((one) => { one.href = link.href + one.dataset.peekLink; });
    mark(link);
    if (isNew) load(link).catch((error) => { if (error.name !== "AbortError") window.postroad.notify("The service cannot be reached.", "bad"); });
  }

  function close() {
    request?.abort();
    const link = linkOf(shown);
    shown = null;
    panel().hidden = true;
    mark(null);
    link?.focus({ preventScroll: true });
  }

  function step(count) {
    const all = links();
    all[Math.min(Math.max(all.indexOf(linkOf(shown)) + count, 0), all.length - 1)]?.focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isTyping()) return;
    const link = event.target.closest("#results a.row-link");
    if (event.key === " " && link && wide.matches) {
      event.preventDefault();
      if (shown === link.href) close();
      else show(link);
    }
    if (!shown) return;
    if (event.key === "Escape") close();
    if (panel().contains(event.target) || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    step(event.key === "ArrowDown" ? 1 : -1);
  });

  /* The row that gets the focus, by an arrow, by j or k, or by a click, is the one that is shown. */
  document.addEventListener("focusin", (event) => {
    if (shown && event.target.matches("#results a.row-link")) show(event.target);
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-peek]");
    if (button) {
      const link = button.closest("tr").querySelector("a.row-link");
      show(link);
      link.focus({ preventScroll: true });
    }
    if (event.target.closest("[data-peek-close]")) close();
    const stepper = event.target.closest("[data-peek-step]");
    if (stepper) step(Number(stepper.dataset.peekStep));
  });

  /* Its row has changed, or the list was replaced. */
  document.addEventListener("prepared", ({ detail: place }) => {
    if (!shown || panel().contains(place)) return;
    const link = linkOf(shown);
    if (panel().hidden || !link) { shown = null; panel().hidden = true; return; }
    mark(link);
    if (place.contains(link)) load(link).catch(() => { /* shown as it was */ });
  });
  wide.addEventListener("change", () => { if (shown && !wide.matches) close(); });
})();
