/* Forms with data-enhanced are sent without leaving the page. Errors are shown next to the form, with the labels of its
   fields, and the input stays, even when the session has expired. A form with a `question` is sent when it is answered with
   yes; what needs a proof of identity asks for it in a dialog and is sent again. A form in a dialog is modal. */
"use strict";
(function () {
  const UNKNOWN_RESULT = "The change may or may not have been made";

  function notice(parts, kind) {
    const line = document.createElement("p");
    line.className = "notice " + kind;
    line.setAttribute("role", kind === "bad" ? "alert" : "status");
    line.append(...parts);
    return line;
  }

  const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

  function top(line) {
    document.getElementById("notices")?.replaceChildren(line);
    line.scrollIntoView({ block: "nearest" });
  }

  /* After the field or the button. A form with only a button shows it at the top of the page. */
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

  /* The error names the field as the API does; people know it by its label. */
  function withLabel(form, text) {
    const [, name, rest] = /^([a-z_]+)(?:\[\d+\])?: (.+)$/s.exec(text) || [];
    const named = name ? form.elements.namedItem(name) : null;
    const field = named instanceof RadioNodeList ? named[0] : named;
    if (!field || field.type === "hidden") return { text: name ? text : sentence(text) };
    const label = named instanceof RadioNodeList ? field.closest("fieldset")?.querySelector("legend") : field.labels[0];
    const folded = field.closest("details");
    if (folded) folded.open = true;
    field.setAttribute("aria-invalid", "true");
    const shown = label?.textContent.trim() || field.getAttribute("aria-label") || name;
    return { text: `${shown}: ${rest}`, field: field.checkVisibility() ? field : null };
  }

  const parse = (html) => new DOMParser().parseFromString(html, "text/html");

  /* The content of a page in place of ours. */
  function replace(next) {
    const main = next.querySelector("main");
    const here = document.querySelector("main");
    if (!main || !here) return null;
    here.replaceChildren(...main.childNodes);
    document.title = next.title;
    document.dispatchEvent(new CustomEvent("replaced", { detail: here }));
    window.postroad.prepare(here);
    return here;
  }

  /* The response to a form can be a page, with a secret that is shown once. */
  function show(html) {
    const here = replace(parse(html));
    if (!here) return;
    here.focus();
    window.scrollTo(0, 0);
  }

  /* The notice of a page that is shown again, where it is seen at any scroll position. */
  function toast(line) {
    document.querySelector(".toast")?.remove();
    line.classList.add("toast");
    line.tabIndex = -1;
    document.body.append(line);
    line.focus({ preventScroll: true });
    /* What can be undone stays, so that there is time for it. */
    if (line.querySelector("form")) return;
    line.addEventListener("click", () => line.remove());
    setTimeout(() => line.remove(), 8000);
  }

  /* A form that leads back to its own page changes it in place: the reader stays where they are. */
  async function reload(target) {
    const answer = await fetch(target, { headers: { "Accept": "text/html" } });
    if (!answer.ok || answer.redirected) { location.assign(target); return; }
    const next = parse(await answer.text());
    if (next.body.dataset.account !== document.body.dataset.account) { location.assign(target); return; }
    const here = replace(next);
    history.replaceState(null, "", target);
    const line = here?.querySelector("#notices > .notice");
    if (line) toast(line);
  }

  /* Resolves with the value of the button that closed the dialog. */
  const closed = (dialog) => new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
    dialog.showModal();
  });

  const questionOf = (form) => form.elements.namedItem("question")?.value;

  async function agrees(form, button) {
    const dialog = document.getElementById("question");
    const [, title, consequence] = /^(.*?\?)\s*(.*)$/s.exec(questionOf(form));
    dialog.querySelector("h2").textContent = title;
    dialog.querySelector("p").textContent = consequence;
    const yes = dialog.querySelector("button[value=yes]");
    yes.textContent = form.elements.namedItem("verb").value;
    yes.classList.toggle("danger", Boolean(button?.classList.contains("bad")));
    return await closed(dialog) === "yes";
  }

  /* The forms of /confirm in a dialog; whether one of them was accepted. */
  async function identify() {
    const dialog = document.getElementById("identity");
    const answer = await fetch("/confirm", { headers: { "Accept": "text/html", "X-Refreshed": "page" } });
    const place = dialog.querySelector("[data-proofs]");
    place.replaceChildren(parse(await answer.text()).querySelector(".proofs"));
    window.postroad.prepare(place);
    const isConfirmed = await closed(dialog) === "confirmed";
    place.replaceChildren();
    return isConfirmed;
  }

  /* After a new login the forms need the CSRF token of the new session. That of another user or account is not used. */
  async function renewToken() {
    const userOf = (page) => `${page.body.dataset.account} ${page.querySelector(".current-user summary")?.textContent}`;
    const answer = await fetch(location.href, { headers: { "Accept": "text/html", "X-Refreshed": "page" } });
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const token = next.querySelector("input[name=csrf_token]")?.value;
    if (!token || userOf(next) !== userOf(document)) return;
    document.querySelectorAll("input[name=csrf_token]").forEach((field) => { field.value = token; });
    delete document.body.dataset.sessionExpired;
  }

  /* In another tab, because what was typed stays in this one. */
  function askToLogIn(form, button) {
    document.body.dataset.sessionExpired = "";
    const link = document.createElement("a");
    Object.assign(link, { href: "/login", target: "_blank", rel: "noopener", textContent: "Log in in a new tab" });
    refuse(form, button, "Your session has expired, and nothing was changed. ", link, ", then submit this form again. Your input is still here.");
  }

  /* Returns what to focus: the button, or the invalid field. Null when the page is left or replaced. */
  async function send(form, button) {
    if ("sessionExpired" in document.body.dataset) await renewToken();
    const body = new URLSearchParams(new FormData(form));
    /* It is disabled by now. */
    if (button?.name) body.set(button.name, button.value);
    ["question", "verb"].forEach((name) => body.delete(name));
    /* The attribute: form.action is the field, in a form that has one with this name. */
    const action = button?.getAttribute("formaction") ?? form.getAttribute("action") ?? location.href;
    const answer = await fetch(action, { method: "POST", body, headers: { "X-Enhanced": "form", "Accept": "text/html" } });
    const where = answer.headers.get("Go-To");
    const dialog = form.closest("#identity");
    if (where && dialog) { dialog.close("confirmed"); return null; }
    if (where) {
      const target = new URL(where, location.href);
      if (target.pathname === location.pathname) await reload(target);
      else location.assign(target);
      return null;
    }
    if (answer.ok) { show(await answer.text()); return { focus: button }; }
    if (answer.status === 401 && !location.pathname.startsWith("/login")) { askToLogIn(form, button); return { focus: button }; }
    if (answer.headers.get("Confirmation") === "required") return await identify() ? send(form, button) : { focus: button };
    const refusal = await answer.json().catch(() => null);
    const { text, field } = withLabel(form, refusal ? refusal.error : `The service responded ${answer.status} without an explanation. ${UNKNOWN_RESULT}.`);
    /* What somebody typed is theirs to correct; a fault of the service is reported, by the id of its request. */
    const id = answer.status >= 500 ? answer.headers.get("X-Request-ID") : null;
    refuse(form, field || button, id ? `${text} Request ID: ${id}` : text);
    return { focus: field || button };
  }

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const button = event.submitter;
    /* A button whose response goes to a frame does not change the page. */
    if (!("enhanced" in form.dataset) || button?.formTarget) return;
    event.preventDefault();
    if (questionOf(form) && !(await agrees(form, button))) return;
    const buttons = form.querySelectorAll("button");
    buttons.forEach((one) => { one.disabled = true; });
    forget(form);
    let next = { focus: button };
    try { next = await send(form, button); }
    catch { refuse(form, button, `The service cannot be reached. ${UNKNOWN_RESULT}. Try again in a moment.`); }
    if (!next) return;
    buttons.forEach((one) => { one.disabled = false; });
    /* A disabled button loses the focus: restore it for keyboard users. */
    if (form.isConnected) next.focus?.focus({ preventScroll: true });
  });

  document.addEventListener("click", (event) => {
    const dialog = event.target.closest("button[popovertarget]")?.popoverTargetElement;
    if (!dialog) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else dialog.showModal();
  });

  /* /keys#new-key opens the form, once. */
  function openNamed() {
    const dialog = document.getElementById(location.hash.slice(1));
    if (!dialog?.matches(".dialog-form") || dialog.open) return;
    history.replaceState(null, "", location.pathname + location.search);
    dialog.showModal();
  }
  window.addEventListener("hashchange", openNamed);
  openNamed();

  /* Its button is for browsers without scripts. */
  const isSavedOnChange = (form) => form && "savedOnChange" in form.dataset;
  const hideButtons = (place) => place.querySelectorAll("form[data-saved-on-change] > button").forEach((button) => { button.hidden = true; });
  hideButtons(document);
  document.addEventListener("prepared", (event) => hideButtons(event.detail));
  document.addEventListener("change", (event) => { if (isSavedOnChange(event.target.form)) event.target.form.requestSubmit(); });

  window.postroad.notify = (text, kind) => top(notice([text], kind));
  window.postroad.refuse = (form, button, text) => { forget(form); refuse(form, button, sentence(text)); };
  window.postroad.identify = identify;
})();
