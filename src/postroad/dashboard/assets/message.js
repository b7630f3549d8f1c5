/* Messages: "/" focuses the search box, and the views of a message change without scrolling. */
"use strict";
(function () {
  const isTyping = () => document.activeElement.matches("input, select, textarea, [contenteditable]");

  document.addEventListener("keydown", (event) => {
    const box = document.querySelector("[data-slash]");
    if (event.key !== "/" || !box || event.ctrlKey || event.altKey || event.metaKey || isTyping()) return;
    event.preventDefault();
    box.focus();
    box.select();
  });

  /* A view is a link to the same page; only the preview is replaced. */
  async function view(link) {
    const answer = await fetch(link.href, { headers: { "Accept": "text/html" } });
    if (!answer.ok || answer.redirected) { location.assign(link.href); return; }
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("preview");
    const here = document.getElementById("preview");
    if (!next || !here) { location.assign(link.href); return; }
    here.replaceWith(next);
    history.replaceState(null, "", link.href);
    window.postroad.prepare(next);
    next.querySelector(".tabs [aria-current]")?.focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("#preview .tabs a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    view(link).catch(() => location.assign(link.href));
  });
})();
