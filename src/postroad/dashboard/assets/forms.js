/* Forms with data-enhanced are sent without leaving the page. What is refused is said where the form is, in the words of
   its labels, and what was typed stays, even when the session is over. data-sure asks before something is done. */
"use strict";
(function () {
  const NOTHING_KNOWN = "Nothing is known of what was done";

  function notice(parts, kind) {
    const line = document.createElement("p");
    line.className = "notice " + kind;
    line.setAttribute("role", kind === "bad" ? "alert" : "status");
    line.append(...parts);
    return line;
  }

  function top(line) {
    document.getElementById("notices")?.replaceChildren(line);
    line.scrollIntoView({ block: "nearest" });
  }

  /* Behind what it is about: a field, or the button. A form that is only a button has no place for it. */
  function refuse(form, about, ...parts) {
    const line = notice(parts, "bad");
    if (form.classList.contains("inline")) { top(line); return; }
    line.dataset.refusal = "";
    const part = about && (about.closest("form .row, form fieldset") || about.closest("form .buttons, form .field") || about);
    if (part && !form.classList.contains("row")) part.after(line);
    else form.append(line);
    line.scrollIntoView({ block: "nearest" });
  }

  function forget(form) {
    form.querySelectorAll("[data-refusal]").forEach((line) => line.remove());
    form.querySelectorAll("[aria-invalid]").forEach((field) => field.removeAttribute("aria-invalid"));
  }

  /* The service calls fields as the API does; people know them by their labels. */
  function inWords(form, text) {
    const [, name, rest] = /^([a-z_]+): (.+)$/s.exec(text) || [];
    const named = name ? form.elements.namedItem(name) : null;
    const field = named instanceof RadioNodeList ? named[0] : named;
    if (!field || field.type === "hidden") return { text };
    const label = named instanceof RadioNodeList ? field.closest("fieldset")?.querySelector("legend") : field.labels[0];
    const folded = field.closest("details");
    if (folded) folded.open = true;
    field.setAttribute("aria-invalid", "true");
    const shown = label?.textContent.trim() || field.getAttribute("aria-label") || name;
    return { text: `${shown}: ${rest}`, field: field.checkVisibility() ? field : null };
  }

  /* The answer to a form may be a whole page, with a secret that is shown once: its content takes the place of ours. */
  function show(html) {
    const next = new DOMParser().parseFromString(html, "text/html");
    const main = next.querySelector("main");
    const here = document.querySelector("main");
    if (!main || !here) return;
    here.replaceChildren(...main.childNodes);
    document.title = next.title;
    window.postroad.prepare(here);
    here.focus();
    window.scrollTo(0, 0);
  }

  /* Who has logged in again has another session, whose forms carry another word. Somebody else's is not taken. */
  async function renewWord() {
    const who = (page) => page.querySelector(".who a")?.textContent;
    const answer = await fetch(location.href, { headers: { "Accept": "text/html", "X-Refreshed": "page" } });
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const word = next.querySelector("input[name=word]")?.value;
    if (!word || who(next) !== who(document)) return;
    document.querySelectorAll("input[name=word]").forEach((field) => { field.value = word; });
    delete document.body.dataset.ended;
  }

  function askToLogIn(form, button, id) {
    const link = document.createElement("a");
    Object.assign(link, { href: "/login", target: "_blank", rel: "noopener", textContent: "Log in in a new tab" });
    document.body.dataset.ended = "";
    refuse(form, button, "Your session is over, and nothing was done. ", link, `, then send this again. What you typed is still here. (request ${id})`);
  }

  /* Gives back what to go on with: the button, or the field that is wrong. Nothing when the page is left. */
  async function send(form, button) {
    if ("ended" in document.body.dataset) await renewWord();
    const body = new URLSearchParams(new FormData(form, button));
    const action = button?.hasAttribute("formaction") ? button.formAction : form.action;
    const answer = await fetch(action, { method: "POST", body, headers: { "X-Enhanced": "form", "Accept": "text/html" } });
    const where = answer.headers.get("Go-To");
    if (where) { location.assign(where); return null; }
    if (answer.ok) { show(await answer.text()); return { focus: button }; }
    if (answer.status === 401 && location.pathname !== "/login") { askToLogIn(form, button, answer.headers.get("X-Request-ID")); return { focus: button }; }
    const refusal = await answer.json().catch(() => null);
    const { text, field } = inWords(form, refusal ? refusal.error : `The service answered with ${answer.status} and no explanation. ${NOTHING_KNOWN}.`);
    refuse(form, field || button, refusal ? `${text} (request ${refusal.request_id})` : text);
    return { focus: field || button };
  }

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const button = event.submitter;
    if (form.dataset.sure && !window.confirm(form.dataset.sure)) { event.preventDefault(); return; }
    /* A button that shows its answer in a frame does not change the page. */
    if (!("enhanced" in form.dataset) || button?.formTarget) return;
    event.preventDefault();
    const buttons = form.querySelectorAll("button");
    buttons.forEach((one) => { one.disabled = true; });
    forget(form);
    let next = { focus: button };
    try { next = await send(form, button); }
    catch { refuse(form, button, `The service cannot be reached. ${NOTHING_KNOWN}; try again in a moment.`); }
    if (!next) return;
    buttons.forEach((one) => { one.disabled = false; });
    /* A button that is disabled loses the focus: whoever uses the keyboard goes on where they were. */
    if (form.isConnected) next.focus?.focus({ preventScroll: true });
  });

  window.postroad.tell = (text, kind) => top(notice([text], kind));
})();
