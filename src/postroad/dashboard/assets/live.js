/* Keeps a page current: when the service says that something has changed, the page is asked for again, and what carries
   data-live is replaced by its new self (found by its id). Hidden pages listen to nothing. It comes before app.js, so
   that it knows the parts as the service wrote them. */
"use strict";
(function () {
  const address = document.body.dataset.live;
  const parts = (place) => place.querySelectorAll("[data-live][id]");
  /* After a refusal the browser gives up; we do not. */
  const PAUSE = 15000;
  const CAN_HAVE_FOCUS = "a[href], button, summary, [tabindex]";
  const originals = new WeakMap();
  let source = null;
  let waiting = null;

  const keep = (place) => parts(place).forEach((part) => originals.set(part, part.cloneNode(true)));
  const busy = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");

  /* Whoever reads a part stays where they are: what is open stays open, and the focus stays in its place. */
  function replace(part, fresh) {
    const focused = [...part.querySelectorAll(CAN_HAVE_FOCUS)].indexOf(document.activeElement);
    const before = { details: part.querySelectorAll("details"), scrolls: part.querySelectorAll(".scroll") };
    const offsets = [...before.scrolls].map((one) => [one.scrollLeft, one.scrollTop]);
    originals.set(fresh, fresh.cloneNode(true));
    part.replaceWith(fresh);
    fresh.querySelectorAll("details").forEach((one, at) => { if (before.details[at]) one.open = before.details[at].open; });
    fresh.classList.add("fresh");
    window.postroad.prepare(fresh);
    fresh.querySelectorAll(".scroll").forEach((one, at) => { if (offsets[at]) [one.scrollLeft, one.scrollTop] = offsets[at]; });
    if (focused >= 0) fresh.querySelectorAll(CAN_HAVE_FOCUS)[focused]?.focus({ preventScroll: true });
  }

  async function refresh() {
    waiting = null;
    const answer = await fetch(location.href, { headers: { "Accept": "text/html", "X-Refreshed": "page" } }).catch(() => null);
    if (!answer || !answer.ok || answer.redirected) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    parts(document).forEach((part) => {
      const fresh = next.getElementById(part.id);
      if (fresh && !busy(part) && !fresh.isEqualNode(originals.get(part) || part)) replace(part, fresh);
    });
  }

  /* Many results in a second are one change. */
  function changed() { if (!waiting) waiting = setTimeout(refresh, 300); }

  function close() { if (source) source.close(); source = null; }

  function listen() {
    if (document.hidden || source || !parts(document).length) return;
    source = new EventSource(address);
    /* What happened before the stream was there, or while it was not, nobody told us. */
    source.addEventListener("open", changed);
    source.addEventListener("changed", changed);
    source.addEventListener("error", () => {
      if (source && source.readyState === EventSource.CLOSED) { close(); setTimeout(listen, PAUSE); }
    });
  }

  if (!address) return;
  keep(document);
  document.addEventListener("prepared", listen);
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else listen(); });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", listen);
})();
