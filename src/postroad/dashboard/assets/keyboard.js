/* Keys: "/" goes to the search of the page or to the palette, j and k to the rows of a list, "?" shows all keys.
   They can be turned off, because speech input types them by accident (WCAG 2.1.4). */
"use strict";
(function () {
  const dialog = document.getElementById("keys");
  if (!dialog) return;
  const STORED = "postroad-single-keys";
  const SEARCH = 'main input[type="search"]';
  let isOn = true;
  try { isOn = localStorage.getItem(STORED) !== "off"; } catch { /* not remembered */ }

  function isBusy() {
    return document.activeElement.matches("input, select, textarea") || document.querySelector("dialog[open]");
  }

  function search() {
    const field = [...document.querySelectorAll(SEARCH)].find((one) => one.checkVisibility());
    if (!field) { window.postroad.openPalette(); return; }
    field.focus();
    field.select();
  }

  /* The link of each row, a row without one, and the way to the next page. */
  function stops() {
    const rows = [...document.querySelectorAll("main tbody tr")].filter((row) => !row.closest("details"));
    const more = document.querySelectorAll("main nav.more a");
    return [...rows.map((row) => row.querySelector("a.row-link, a[href]") || row), ...more].filter((one) => one.checkVisibility());
  }

  function move(step) {
    const all = stops();
    const at = all.findIndex((one) => one === document.activeElement || one.closest("tr")?.contains(document.activeElement));
    const next = at < 0 ? all[0] : all[Math.min(Math.max(at + step, 0), all.length - 1)];
    if (!next) return;
    if (next.matches("tr")) next.tabIndex = -1;
    next.focus();
  }

  const KEYS = { "/": search, "j": () => move(1), "k": () => move(-1), "?": () => dialog.showModal() };
  document.addEventListener("keydown", (event) => {
    const act = Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
    if (!act || !isOn || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isBusy()) return;
    event.preventDefault();
    act();
  });

  const choice = dialog.querySelector("[data-single-keys]");
  choice.checked = isOn;
  choice.addEventListener("change", () => {
    isOn = choice.checked;
    try { localStorage.setItem(STORED, isOn ? "on" : "off"); } catch { /* for this page only */ }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.querySelectorAll("[data-show-keys]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => dialog.showModal());
  });
})();
