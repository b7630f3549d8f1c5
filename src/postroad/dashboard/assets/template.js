/* The template editor: an input for each placeholder instead of JSON, and a preview that updates while typing.
   Each preview loads in a new frame that replaces the last one when it is ready: nothing flickers, and the browser's
   history does not fill with previews. */
"use strict";
(function () {
  /* The syntax of protocol/text/placeholders.py. */
  const PLACEHOLDER = /\{\{ *([A-Za-z_][A-Za-z0-9_.-]{0,63}) *\}\}/g;
  const SECTION = /\{\{[#^]/;
  const PAUSE = 500;
  /* More than a message can have; the rest stays in the JSON. */
  const MAX_INPUTS = 64;

  function given(area) {
    try { return Object.entries(JSON.parse(area.value || "{}")); } catch { return []; }
  }

  function start(place) {
    const form = place.querySelector("form[data-template]");
    if (!form || form.dataset.ready) return;
    form.dataset.ready = "true";
    const area = form.querySelector("[name=values]");
    const box = form.querySelector("[data-values]");
    const none = form.querySelector("[data-values-none]");
    const sources = [...form.querySelectorAll("[data-source]")];
    const buttons = [...form.querySelectorAll("button[name=part]")];
    const values = new Map(given(area));
    let chosen = buttons[0];
    let waiting = null;
    let made = 0;

    function names() {
      const found = sources.flatMap((field) => [...field.value.matchAll(PLACEHOLDER)].map((match) => match[1]));
      return [...new Set(found)];
    }

    function input(name, place) {
      const row = document.createElement("div");
      const label = document.createElement("label");
      const code = document.createElement("code");
      const field = document.createElement("input");
      row.className = "value";
      code.textContent = name;
      label.append(code);
      label.htmlFor = field.id = `value-${place}`;
      field.autocomplete = "off";
      field.value = values.get(name);
      field.dataset.value = name;
      row.append(label, field);
      return row;
    }

    /* Inputs are rebuilt only when the names change, to keep the focus. */
    function write() {
      /* Lists and objects are written as JSON. */
      const plain = !sources.some((field) => SECTION.test(field.value));
      box.hidden = !plain;
      form.querySelector("[data-values-text]").hidden = plain;
      if (!plain) return;
      const wanted = names();
      for (const name of wanted) if (!values.has(name)) values.set(name, name.replace(/[_.-]+/g, " ").trim() || name);
      area.value = JSON.stringify(Object.fromEntries(wanted.map((name) => [name, values.get(name)])), null, 2);
      none.hidden = wanted.length > 0;
      const shown = wanted.slice(0, MAX_INPUTS);
      const present = [...box.querySelectorAll("input")].map((field) => field.dataset.value);
      if (shown.join(" ") !== present.join(" ")) box.replaceChildren(...shown.map(input));
    }

    function preview() {
      waiting = null;
      const frames = [...form.querySelectorAll("iframe")];
      const next = frames[frames.length - 1].cloneNode();
      /* A frame keeps its first name, so each needs its own. */
      made += 1;
      next.name = `preview-${made}`;
      buttons.forEach((button) => { button.formTarget = next.name; });
      next.removeAttribute("src");
      next.hidden = true;
      frames[frames.length - 1].after(next);
      /* Only now: inserting the frame fires a load event, too. */
      next.addEventListener("load", () => { frames.forEach((frame) => frame.remove()); next.hidden = false; }, { once: true });
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(button === chosen)));
      form.requestSubmit(chosen);
    }

    function soon() { clearTimeout(waiting); waiting = setTimeout(preview, PAUSE); }

    form.addEventListener("input", (event) => {
      const field = event.target;
      if (field.name === "scheme") { preview(); return; }
      if (field.dataset.value) values.set(field.dataset.value, field.value);
      if (!field.dataset.value && field !== area && !("source" in field.dataset)) return;
      write();
      soon();
    });
    /* Enter would press the first button, which saves. */
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !event.target.matches(".preview input")) return;
      event.preventDefault();
      preview();
    });
    buttons.forEach((button) => button.addEventListener("click", (event) => {
      event.preventDefault();
      chosen = button;
      preview();
    }));

    if (!form.querySelector("[name=html]").value) chosen = buttons[1];
    write();
    preview();
  }

  document.addEventListener("prepared", (event) => start(event.detail));
  start(document);
})();
