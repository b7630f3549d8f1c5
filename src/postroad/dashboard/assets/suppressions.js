/* Reads a chosen file into the form field, where it can be checked before it is sent. */
"use strict";
(function () {
  const MAX_BYTES = 7 * 1024 * 1024;

  async function read(chooser, field) {
    const file = chooser.files[0];
    if (!file) return;
    if (file.size > MAX_BYTES) {
      chooser.value = "";
      window.postroad.notify("This file is too large. Split it, or send it to POST /v1/suppressions/import.", "bad");
      return;
    }
    try {
      field.value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      chooser.value = "";
      window.postroad.notify("This file is not UTF-8. Save it as CSV in UTF-8.", "bad");
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
