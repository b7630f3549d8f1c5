/* Enhancements; every page works without them: copy buttons, relative times, the offer of a time zone, the collapsible menu, the theme. */
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

  /* Without a choice it is that of the system. */
  function setTheme(chosen) {
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    try { localStorage.setItem("postroad-theme", chosen); } catch { /* not remembered */ }
    document.dispatchEvent(new Event("theme"));
  }

  document.querySelectorAll("[data-theme-choice]").forEach((choice) => {
    const now = document.documentElement.dataset.theme ?? "system";
    choice.hidden = false;
    choice.querySelectorAll("input").forEach((one) => { one.checked = one.value === now; });
    choice.addEventListener("change", (event) => setTheme(event.target.value));
  });

  const account = document.querySelector(".current-user");
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !account?.open) return;
    const hadFocus = account.contains(document.activeElement);
    account.open = false;
    if (hadFocus) account.querySelector("summary").focus();
  });

  document.addEventListener("click", (event) => {
    if (account?.open && !account.contains(event.target)) account.open = false;
    const button = event.target.closest("button");
    if (!button) return;
    if ("copy" in button.dataset) copy(button);
  });

  /* As the service writes them (dashboard/framework/site.py); the page stays open, so they change. */
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  function refreshAgo() {
    document.querySelectorAll("time[data-ago]").forEach((element) => {
      const seconds = Math.floor((Date.now() - Date.parse(element.dateTime)) / 1000);
      const [size, unit] = UNITS.find(([size]) => Math.abs(seconds) >= size) || UNITS[3];
      const count = `${Math.floor(Math.abs(seconds) / size)} ${unit}`;
      const text = Math.abs(seconds) < 5 ? "now" : seconds > 0 ? `${count} ago` : `in ${count}`;
      if (element.textContent !== text) element.textContent = text;
    });
  }
  setInterval(refreshAgo, 10000);

  /* Until a time zone is chosen, the one of the browser is offered. */
  function offerZone(form) {
    const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (!name || name === "UTC" || name === "Etc/UTC") return;
    form.querySelector("[data-zone-name]").textContent = name;
    form.elements.time_zone.value = name;
    form.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { "X-Enhanced": "form" } });
      if (answer.ok) location.reload();
    });
  }

  /* Prepares new content: after loading, after a form, after a live update. */
  function prepare(place) {
    place.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = false; });
    document.dispatchEvent(new CustomEvent("prepared", { detail: place }));
  }

  window.postroad = { prepare };
  const menu = document.querySelector(".menu");
  const wide = window.matchMedia("(min-width: 56.01rem)");
  const open = () => { if (menu) { menu.open = wide.matches; menu.dataset.ready = ""; } };
  wide.addEventListener("change", open);
  open();
  document.querySelectorAll("[data-zone-offer]").forEach(offerZone);
  prepare(document);
  /* The page to which a form has led begins with what was done. */
  document.querySelector("#notices > .notice")?.focus({ preventScroll: true });
})();
