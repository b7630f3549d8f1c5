/* Messages: the views of a message change without scrolling. */
"use strict";
(function () {
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
    const group = link.closest("nav")?.getAttribute("aria-label");
    next.querySelector(group ? `nav[aria-label="${group}"] [aria-current]` : "[data-in-place]")?.focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("#preview .tabs a, #preview [data-in-place]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    view(link).catch(() => location.assign(link.href));
  });
})();
