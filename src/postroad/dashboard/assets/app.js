/* What makes pages nicer. Every page works without it.
   - forms with data-enhanced are sent without leaving the page, and refusals are shown where the form is;
   - data-sure asks before something is done; data-copy copies; times are shown in the reader's own time. */
"use strict";
(function () {
  const notices = () => document.getElementById("notices");

  function tell(text, kind) {
    const place = notices();
    if (!place) return;
    const line = document.createElement("p");
    line.className = "notice " + kind;
    line.setAttribute("role", kind === "bad" ? "alert" : "status");
    line.textContent = text;
    place.replaceChildren(line);
    line.scrollIntoView({ block: "nearest" });
  }

  /* The answer to a form may be a whole page, with a secret that is shown once: its content takes the place of ours. */
  function show(html) {
    const next = new DOMParser().parseFromString(html, "text/html");
    const main = next.querySelector("main");
    const here = document.querySelector("main");
    if (!main || !here) return;
    here.replaceChildren(...main.childNodes);
    document.title = next.title;
    prepare(here);
    here.focus();
    window.scrollTo(0, 0);
  }

  async function send(form, button) {
    const body = new URLSearchParams(new FormData(form, button || undefined));
    const action = button && button.hasAttribute("formaction") ? button.formAction : form.action;
    const answer = await fetch(action, { method: "POST", body, headers: { "X-Enhanced": "form", "Accept": "text/html" } });
    const where = answer.headers.get("Go-To");
    if (where) { location.assign(where); return true; }
    if (answer.ok) { show(await answer.text()); return false; }
    if (answer.status === 401 && location.pathname !== "/login") { location.assign("/login"); return true; }
    const refusal = await answer.json().catch(() => null);
    if (refusal) tell(`${refusal.error} (request ${refusal.request_id})`, "bad");
    else tell(`The service answered with ${answer.status} and no explanation. Nothing is known of what was done.`, "bad");
    return false;
  }

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.dataset.sure && !window.confirm(form.dataset.sure)) { event.preventDefault(); return; }
    /* A button that shows its answer in a frame does not change the page. */
    if (!("enhanced" in form.dataset) || (event.submitter && event.submitter.formTarget)) return;
    event.preventDefault();
    const buttons = form.querySelectorAll("button");
    buttons.forEach((button) => { button.disabled = true; });
    let leaving = false;
    try { leaving = await send(form, event.submitter); }
    catch { tell("The service cannot be reached. Nothing is known of what was done; try again in a moment.", "bad"); }
    if (!leaving) buttons.forEach((button) => { button.disabled = false; });
  });

  async function copy(button) {
    const before = button.textContent;
    try { await navigator.clipboard.writeText(button.dataset.copy); button.textContent = "Copied"; }
    catch {
      /* Without TLS a browser may forbid it: the text is marked, ready for the keyboard. */
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
    try { localStorage.setItem("postroad-theme", chosen); } catch { /* for this page only, then */ }
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

  /* Whatever is new on the page: after it was loaded, after a form, after something has changed. */
  function prepare(place) {
    place.querySelectorAll("time[datetime]").forEach(localTime);
    place.querySelectorAll("[data-copy], [data-theme-switch]").forEach((button) => { button.hidden = false; });
    document.dispatchEvent(new CustomEvent("prepared", { detail: place }));
  }

  window.postroad = { prepare, tell };
  const menu = document.querySelector(".menu");
  const wide = window.matchMedia("(min-width: 56.01rem)");
  const open = () => { if (menu) menu.open = wide.matches; };
  wide.addEventListener("change", open);
  open();
  prepare(document);
})();
