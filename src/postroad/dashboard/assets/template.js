/* The template editor: a field for each test value instead of JSON, and a preview that follows the typing.
   Each preview loads in a new frame that replaces the last one when it is ready: nothing flickers, and the browser's
   history does not fill with previews. */
"use strict";
(function () {
  const PAUSE = 400;
  /* More than a message can have; the rest stays in the JSON. */
  const MAX_FIELDS = 64;

  function parsed(text) {
    try { return JSON.parse(text || "{}"); } catch { return null; }
  }

  const kindOf = (value) => (value !== null && typeof value === "object" ? "list" : typeof value);

  /* A box to tick for what is shown or not, JSON for lists and objects, and a line for a text. */
  function fieldOf(name, value, place) {
    const row = document.createElement("div");
    const label = document.createElement("label");
    const code = document.createElement("code");
    const kind = kindOf(value);
    const field = document.createElement(kind === "list" ? "textarea" : "input");
    row.className = `value value-${kind}`;
    code.textContent = name;
    label.append(code);
    label.htmlFor = field.id = `value-${place}`;
    Object.assign(field.dataset, { value: name, kind });
    if (kind === "boolean") field.type = "checkbox";
    else field.autocomplete = "off";
    if (kind === "list") Object.assign(field, { className: "code", spellcheck: false });
    row.append(label, field);
    return row;
  }

  function show(field, value) {
    if (field.dataset.kind === "boolean") field.checked = value;
    else if (field.dataset.kind === "list") {
      field.value = JSON.stringify(value, null, 2);
      field.rows = Math.min(12, field.value.split("\n").length);
    } else field.value = value ?? "";
  }

  /* What was typed; undefined while it is not JSON. A number stays one: to a section, 0 is nothing and "0" is. */
  function read(field, before) {
    if (field.dataset.kind === "boolean") return field.checked;
    if (field.dataset.kind === "list") {
      const value = parsed(field.value);
      field.setAttribute("aria-invalid", String(value === null));
      return value ?? undefined;
    }
    return typeof before === "number" && field.value.trim() && Number.isFinite(Number(field.value)) ? Number(field.value) : field.value;
  }

  function start(place) {
    const form = place.querySelector("form[data-template]");
    if (!form || form.dataset.ready) return;
    form.dataset.ready = "true";
    const area = form.querySelector("[name=values]");
    const box = form.querySelector("[data-values]");
    const frameBox = form.querySelector(".preview-frame");
    const sources = [...form.querySelectorAll("[data-source]")];
    const parts = new Map([...form.querySelectorAll("button[name=part]")].map((button) => [button.value, button]));
    let values = parsed(area.value) || {};
    /* A name that was removed, and comes back, has its value again. */
    let known = values;
    let chosen = "html";
    let waiting = null;
    let asked = 0;
    let made = 0;

    /* Fields are rebuilt only when the names change, and what is being typed is left alone. */
    function write() {
      const names = Object.keys(values).slice(0, MAX_FIELDS);
      const wanted = names.map((name) => `${name} ${kindOf(values[name])}`).join("\n");
      area.value = JSON.stringify(values, null, 2);
      form.querySelector("[data-values-none]").hidden = names.length > 0;
      if (box.dataset.names !== wanted) {
        box.dataset.names = wanted;
        box.replaceChildren(...names.map((name, place) => fieldOf(name, values[name], place)));
      }
      box.querySelectorAll("[data-value]").forEach((field) => {
        if (field !== document.activeElement) show(field, values[field.dataset.value]);
      });
    }

    /* The mistakes are for the code editors (template_editor.js). A reader's form has nothing to check. */
    async function check() {
      if (!form.hasAttribute("data-enhanced")) return;
      asked += 1;
      const number = asked;
      const body = new URLSearchParams(new FormData(form));
      body.set("values", JSON.stringify({ ...known, ...values }));
      try {
        const answer = await fetch("/template/check", { method: "POST", body, headers: { "Accept": "application/json" } });
        if (!answer.ok) return;
        const found = await answer.json();
        /* What was typed since is not in it, and is checked next. */
        if (number !== asked || waiting) return;
        sources.forEach((source) => source.dispatchEvent(new CustomEvent("checked", { detail: found.problems })));
        if (!found.values) return;
        values = found.values;
        known = { ...known, ...values };
        write();
      } catch { /* the next change asks again */ }
    }

    function preview() {
      const frames = [...form.querySelectorAll("iframe")];
      const next = frames[frames.length - 1].cloneNode();
      /* A frame keeps its first name, so each needs its own. */
      made += 1;
      next.name = `preview-${made}`;
      parts.forEach((button) => { button.formTarget = next.name; });
      next.removeAttribute("src");
      next.hidden = true;
      frames[frames.length - 1].after(next);
      /* Only now: inserting the frame fires a load event, too. */
      next.addEventListener("load", () => { frames.forEach((frame) => frame.remove()); next.hidden = false; }, { once: true });
      form.requestSubmit(parts.get(chosen));
    }

    async function refresh() {
      waiting = null;
      await check();
      if (form.isConnected && !waiting) preview();
    }

    function soon() {
      clearTimeout(waiting);
      waiting = setTimeout(refresh, PAUSE);
    }

    /* The whole width of the mail is seen, smaller where there is less room. */
    function fit() {
      const width = frameBox.querySelector("iframe:not([hidden])").offsetWidth;
      frameBox.style.setProperty("--scale", Math.min(1, frameBox.clientWidth / width));
    }

    form.addEventListener("input", (event) => {
      const field = event.target;
      if (field.name === "width") fit();
      else if (field.name === "scheme") preview();
      else if (field.dataset.value) {
        const value = read(field, values[field.dataset.value]);
        if (value === undefined) return;
        values[field.dataset.value] = value;
        area.value = JSON.stringify(values, null, 2);
        soon();
      } else if (field.name === "layout" || "source" in field.dataset) soon();
    });
    /* Enter would press the first button, which saves. */
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !event.target.matches("input[data-value], .preview input")) return;
      event.preventDefault();
      refresh();
    });
    /* The preview shows what is being written. */
    form.addEventListener("tab", (event) => {
      chosen = event.detail;
      preview();
    });

    form.querySelector("[data-parts]").hidden = true;
    form.querySelector("[data-values-text]").hidden = true;
    box.hidden = false;
    frameBox.dataset.fitted = "";
    new ResizeObserver(fit).observe(frameBox);
    write();
    const tabs = form.querySelectorAll("[role=tab]");
    if (!form.querySelector("[name=html]").value && tabs.length) tabs[1].click();
    else preview();
  }

  document.addEventListener("prepared", (event) => start(event.detail));
  start(document);
})();
