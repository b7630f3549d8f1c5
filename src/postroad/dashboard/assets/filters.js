/* Filters that act at once: a form with data-instant is sent when a field changes, and the part of the page with that id
   is replaced. The fields take what the service made of them, except the one that has the focus. */
"use strict";
(function () {
  /* Between two letters of somebody who types. */
  const DELAY = 250;
  let waiting = null;
  let request = null;
  const written = (form) => new URLSearchParams([...new FormData(form)].filter(([, value]) => value)).toString();
  /* What each form has found last. */
  const found = new WeakMap();

  function take(form, next) {
    for (const fresh of next.querySelectorAll("[name]")) {
      const field = form.elements.namedItem(fresh.name);
      if (field.matches("select")) field.replaceChildren(...fresh.cloneNode(true).children);
      if (field !== document.activeElement || field.matches("select")) field.value = fresh.value;
      for (const name of ["aria-invalid", "aria-describedby"]) {
        if (fresh.hasAttribute(name)) field.setAttribute(name, fresh.getAttribute(name));
        else field.removeAttribute(name);
      }
    }
  }

  /* While somebody types, a search is often not complete: a mistake in it shows when they stop. */
  async function send(form, isTyping) {
    clearTimeout(waiting);
    const fields = written(form);
    if (found.get(form) === fields || !form.checkValidity()) return;
    request?.abort();
    const mine = request = new AbortController();
    const action = form.getAttribute("action");
    const address = fields ? `${action}?${fields}` : action;
    const answer = await fetch(address, { headers: { "Accept": "text/html" }, signal: mine.signal });
    if (answer.status === 400 && isTyping) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = next.getElementById(form.dataset.instant);
    const nextForm = next.querySelector("form[data-instant]");
    /* In another tab, this browser has logged in to or switched to another account: never mix the two. */
    const isOther = next.body.dataset.account !== document.body.dataset.account;
    if (isOther || !fresh || !nextForm) { location.assign(address); return; }
    document.getElementById(form.dataset.instant).replaceWith(fresh);
    /* What was typed meanwhile is still to be sent. */
    const isCurrent = written(form) === fields;
    take(form, nextForm);
    found.set(form, isCurrent ? written(form) : null);
    history.replaceState(null, "", answer.url);
    document.dispatchEvent(new CustomEvent("replaced", { detail: fresh }));
    window.postroad.prepare(fresh);
    const status = form.querySelector("[role=status]");
    if (status) status.textContent = fresh.querySelector("#count, .empty h2, .notice")?.textContent ?? "";
  }

  function apply(form, isTyping) {
    send(form, isTyping).catch((error) => {
      if (error.name !== "AbortError") window.postroad.notify("The service cannot be reached. Try again in a moment.", "bad");
    });
  }

  const instant = (event) => event.target.closest("form[data-instant]");
  document.addEventListener("input", (event) => {
    const form = instant(event);
    if (!form || event.target.matches("select")) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => apply(form, true), DELAY);
  });
  document.addEventListener("change", (event) => { if (instant(event)) apply(instant(event), false); });
  document.addEventListener("submit", (event) => {
    if (!instant(event)) return;
    event.preventDefault();
    apply(instant(event), false);
  });
  document.querySelectorAll("form[data-instant]").forEach((form) => found.set(form, written(form)));
})();
