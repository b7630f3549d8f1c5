/* Live updates: when the service reports a change, the page is fetched again, and elements with data-live are replaced by
   their new version (found by id). Hidden pages do not listen. Loaded before app.js, to see the elements as served. */
"use strict";
(function () {
  const address = document.body.dataset.live;
  const parts = (place) => place.querySelectorAll("[data-live][id]");
  /* Browsers do not reconnect after an error response; we do. */
  const RECONNECT_DELAY = 15000;
  const MIN_WAIT = 300;
  const MAX_WAIT = 10000;
  const FETCH_TIMEOUT = 30000;
  const CAN_HAVE_FOCUS = "a[href], button, summary, [tabindex]";
  const originals = new WeakMap();
  let source = null;
  let waiting = null;
  let asking = false;
  let again = false;
  let wait = MIN_WAIT;

  const keep = (place) => parts(place).forEach((part) => originals.set(part, part.cloneNode(true)));
  const busy = (part) => part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");

  /* Keeps the reader's place: open details, scroll offsets and the focus. */
  function replace(part, fresh) {
    const focused = [...part.querySelectorAll(CAN_HAVE_FOCUS)].indexOf(document.activeElement);
    const href = focused >= 0 ? document.activeElement.getAttribute("href") : null;
    const before = { details: part.querySelectorAll("details"), scrolls: part.querySelectorAll(".scroll") };
    const offsets = [...before.scrolls].map((one) => [one.scrollLeft, one.scrollTop]);
    originals.set(fresh, fresh.cloneNode(true));
    part.replaceWith(fresh);
    fresh.querySelectorAll("details").forEach((one, at) => { if (before.details[at]) one.open = before.details[at].open; });
    /* A row with a link is new when it was not there or has changed. */
    const read = (row) => `${row.querySelector("a")?.getAttribute("href")} ${row.textContent}`;
    const known = new Set([...(originals.get(part) || part).querySelectorAll("tbody tr")].map(read));
    originals.get(fresh).querySelectorAll("tbody tr").forEach((row, at) => {
      if (row.querySelector("a") && !known.has(read(row))) fresh.querySelectorAll("tbody tr")[at].classList.add("fresh");
    });
    fresh.classList.add("fresh");
    window.postroad.prepare(fresh);
    fresh.querySelectorAll(".scroll").forEach((one, at) => { if (offsets[at]) [one.scrollLeft, one.scrollTop] = offsets[at]; });
    if (focused < 0) return;
    const able = [...fresh.querySelectorAll(CAN_HAVE_FOCUS)];
    (able.find((one) => href && one.getAttribute("href") === href) || able[focused])?.focus({ preventScroll: true });
  }

  async function refresh() {
    const request = { headers: { "Accept": "text/html", "X-Refreshed": "page" }, signal: AbortSignal.timeout(FETCH_TIMEOUT) };
    const answer = await fetch(location.href, request).catch(() => null);
    const text = answer && answer.ok && !answer.redirected ? await answer.text().catch(() => null) : null;
    if (text === null) return;
    const next = new DOMParser().parseFromString(text, "text/html");
    parts(document).forEach((part) => {
      const fresh = next.getElementById(part.id);
      if (fresh && !busy(part) && !fresh.isEqualNode(originals.get(part) || part)) replace(part, fresh);
    });
  }

  async function run() {
    const began = performance.now();
    [waiting, asking, again] = [null, true, false];
    try { await refresh(); } finally {
      wait = Math.min(MAX_WAIT, Math.max(MIN_WAIT, 5 * (performance.now() - began)));
      asking = false;
      if (again) changed();
    }
  }

  /* Many results in a second are one change. Pages that are slow to render are fetched less often. */
  function changed() {
    if (asking) again = true;
    else if (!waiting) waiting = setTimeout(run, wait);
  }

  function close() { if (source) source.close(); source = null; }

  function listen() {
    if (document.hidden || source || !parts(document).length) return;
    source = new EventSource(address);
    /* Changes before the stream opened were not reported. */
    source.addEventListener("open", changed);
    source.addEventListener("changed", changed);
    source.addEventListener("error", () => {
      if (source && source.readyState === EventSource.CLOSED) { close(); setTimeout(listen, RECONNECT_DELAY); }
    });
  }

  if (!address) return;
  keep(document);
  document.addEventListener("prepared", listen);
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else listen(); });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", listen);
})();
