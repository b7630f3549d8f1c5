/* Enhancements; every page works without them: copy buttons, times in local time, the collapsible menu, the theme. */
"use strict";
(function () {
  async function copy(button) {
    const before = button.textContent;
    try { await navigator.clipboard.writeText(button.dataset.copy); button.textContent = "Copied"; }
    catch {
      /* Without TLS a browser may forbid it: select the text for the keyboard. */
      const text = button.parentElement.querySelector("code");
      if (text) window.getSelection().selectAllChildren(text);
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { button.textContent = before; }, 2000);
  }

  function switchTheme() {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    const chosen = dark ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try { localStorage.setItem("postroad-theme", chosen); } catch { /* not remembered */ }
    document.dispatchEvent(new Event("theme"));
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if ("copy" in button.dataset) copy(button);
    if ("themeSwitch" in button.dataset) switchTheme();
  });

  function localTime(element) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) return;
    const two = (number) => String(number).padStart(2, "0");
    element.textContent = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ${two(moment.getHours())}:${two(moment.getMinutes())}`;
  }

  /* Prepares new content: after loading, after a form, after a live update. */
  function prepare(place) {
    place.querySelectorAll("time[datetime]").forEach(localTime);
    place.querySelectorAll("[data-copy], [data-theme-switch]").forEach((button) => { button.hidden = false; });
    document.dispatchEvent(new CustomEvent("prepared", { detail: place }));
  }

  window.postroad = { prepare };
  const menu = document.querySelector(".menu");
  const wide = window.matchMedia("(min-width: 56.01rem)");
  const open = () => { if (menu) { menu.open = wide.matches; menu.dataset.ready = ""; } };
  wide.addEventListener("change", open);
  open();
  prepare(document);
})();
