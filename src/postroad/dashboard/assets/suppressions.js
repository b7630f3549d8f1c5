/* A file that is chosen is read into the field of the form, where it can be looked at before it is sent. */
"use strict";
(function () {
  const MOST_BYTES = 7 * 1024 * 1024;

  async function read(chooser, field) {
    const file = chooser.files[0];
    if (!file) return;
    if (file.size > MOST_BYTES) {
      chooser.value = "";
      window.postroad.tell("This file is too long for a form. Split it, or send it to POST /v1/suppressions/import.", "bad");
      return;
    }
    try {
      field.value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      chooser.value = "";
      window.postroad.tell("This file is not UTF-8. Save it as CSV in UTF-8.", "bad");
    }
  }

  function prepare(place) {
    place.querySelectorAll("[data-file-for]").forEach((part) => {
      const chooser = part.querySelector("input[type=file]");
      const field = document.getElementById(part.dataset.fileFor);
      if (!chooser || !field || !part.hidden) return;
      part.hidden = false;
      chooser.addEventListener("change", () => read(chooser, field));
    });
  }

  document.addEventListener("prepared", (event) => prepare(event.detail));
  prepare(document);
})();
