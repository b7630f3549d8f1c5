/* The palette: /find in a dialog, as a combobox with a list box (ARIA Authoring Practices). The focus stays in the
   field; arrows choose, Enter opens. Without scripts the link leads to the page itself. */
"use strict";
(function () {
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const field = dialog.querySelector("input");
  const list = dialog.querySelector("[role=listbox]");
  const status = dialog.querySelector("[role=status]");
  const form = field.form;
  const TYPING_PAUSE = 120;
  const FETCH_TIMEOUT = 30000;
  /* On a Mac, Ctrl-K deletes to the end of the line. */
  const isMac = /^(Mac|iPhone|iPad)/.test(navigator.platform);
  let chosen = null;
  /* The text whose results are listed, and the newest request. */
  let listed = null;
  let newest = null;
  let timer = null;

  const options = () => [...list.querySelectorAll("[role=option]")];
  const pageOf = (text) => `${form.action}?${new URLSearchParams({ q: text })}`;

  function choose(option) {
    chosen?.removeAttribute("aria-selected");
    chosen = option || null;
    if (!chosen) { field.removeAttribute("aria-activedescendant"); return; }
    chosen.setAttribute("aria-selected", "true");
    field.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  function groupOf(section) {
    const group = document.createElement("div");
    const title = document.createElement("div");
    title.textContent = section.querySelector("h2").textContent;
    title.className = "palette-title";
    title.setAttribute("aria-hidden", "true");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", title.textContent);
    group.append(title, ...[...section.querySelectorAll("a")].map((link) => document.importNode(link, true)));
    return group;
  }

  /* What only a script can do; each is offered where what it acts on is there. */
  const ACTS = [
    { text: "Switch theme", find: () => document.querySelector("[data-theme-choice] input:not(:checked)"), act: switchTheme },
    { text: "Copy message ID", find: () => document.querySelector('main [data-copy^="em_"]'), act: (button) => button.click() },
  ];

  function switchTheme() {
    const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.querySelector(`[data-theme-choice] input[value=${isDark ? "light" : "dark"}]`).click();
  }

  function actsFor(text) {
    const words = text.toLowerCase().split(/\s+/);
    const found = ACTS.filter((one) => words.every((word) => one.text.toLowerCase().includes(word)) && one.find());
    if (!text || !found.length) return [];
    const section = document.createElement("section");
    section.append(document.createElement("h2"), ...found.map((one) => Object.assign(document.createElement("a"), { textContent: one.text })));
    section.firstChild.textContent = "Here";
    return [section];
  }

  list.addEventListener("click", (event) => {
    const act = ACTS.find((one) => one.text === event.target.closest("a:not([href])")?.textContent);
    if (act) act.act(act.find());
  });

  function show(text, sections) {
    list.replaceChildren(...[...actsFor(text), ...sections].map(groupOf));
    list.querySelectorAll("a").forEach((link, at) => {
      link.id = `palette-option-${at}`;
      link.tabIndex = -1;
      link.setAttribute("role", "option");
    });
    const all = options();
    listed = text;
    list.hidden = !all.length;
    field.setAttribute("aria-expanded", String(all.length > 0));
    status.textContent = all.length ? `${all.length} ${all.length === 1 ? "result" : "results"}` : "Nothing matches.";
    status.classList.toggle("visually-hidden", all.length > 0);
    choose(all[0]);
  }

  /* An answer that is late is not shown. Whoever is no longer logged in goes to the page, which asks for it. */
  async function ask(text) {
    clearTimeout(timer);
    const request = newest = fetch(pageOf(text), { headers: { "Accept": "text/html", "X-Refreshed": "page" }, signal: AbortSignal.timeout(FETCH_TIMEOUT) });
    try {
      const answer = await request;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (request !== newest) return;
      const found = answer.ok && next.getElementById("found");
      if (found) show(text, found.querySelectorAll("section"));
      else location.assign(pageOf(text));
    } catch {
      if (request !== newest) return;
      status.textContent = "The service cannot be reached. Try again in a moment.";
      status.classList.remove("visually-hidden");
    }
  }

  function open() {
    document.querySelectorAll("dialog[open]").forEach((one) => one.close());
    field.value = "";
    listed = null;
    dialog.showModal();
    field.focus();
    ask("");
  }

  function move(step) {
    const all = options();
    if (all.length) choose(all[(all.indexOf(chosen) + step + all.length) % all.length]);
  }

  /* Whoever types faster than the service answers gets the result of what they typed. */
  async function follow() {
    const text = field.value;
    if (listed !== text) await ask(text);
    if (listed === text && field.value === text) chosen?.click();
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => ask(field.value), TYPING_PAUSE);
  });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.isComposing) return;
    event.preventDefault();
    move(step);
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); follow(); });
  list.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { clearTimeout(timer); newest = null; });

  document.addEventListener("keydown", (event) => {
    const isOurs = event.key.toLowerCase() === "k" && !event.altKey && !event.shiftKey && (isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey);
    if (!isOurs) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else open();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-palette]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    open();
  });
  document.querySelectorAll("[data-palette-keys]").forEach((keys) => {
    if (isMac) keys.textContent = "⌘ K";
    keys.hidden = false;
  });
  window.postroad.openPalette = open;
})();
