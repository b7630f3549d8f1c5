/* Live updates: when the service reports a change, the page is fetched again, and elements with data-live are replaced by
   their new version (found by id). In a list (data-live="rows") rows change where they are, and new ones wait behind a
   link; lines (data-live="lines") are appended. Hidden and paused pages do not change. Loaded before app.js, to see the elements as served. */
"use strict";
(function () {
  const address = document.body.dataset.live;
  const parts = (place) => place.querySelectorAll("[data-live][id]");
  const RECONNECT_DELAY = 3000;
  const REFUSED_DELAY = 15000;
  const MIN_WAIT = 300;
  const MAX_WAIT = 10000;
  /* More than the service sends at once (services/messages/message_history.py). */
  const MAX_LINES = 1000;
  const FETCH_TIMEOUT = 30000;
  const CAN_HAVE_FOCUS = "a[href], button, summary, [tabindex]";
  const originals = new WeakMap();
  /* What the page shows: the stream tells of what is newer. */
  let shown = document.body.dataset.fingerprint;
  let source = null;
  let waiting = null;
  let asking = false;
  let again = false;
  let wait = MIN_WAIT;
  let isPaused = false;
  /* The newest version of the list, shown when its link is followed. */
  let latest = null;

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
    const read = (row) => `${row.querySelector("a")?.getAttribute("href")} ${contentOf(row)}`;
    const known = new Set([...(originals.get(part) || part).querySelectorAll("tbody tr")].map(read));
    originals.get(fresh).querySelectorAll("tbody tr").forEach((row, at) => {
      if (row.querySelector("a") && !known.has(read(row))) fresh.querySelectorAll("tbody tr")[at].classList.add("fresh");
    });
    if (contentOf(originals.get(fresh)) !== contentOf(originals.get(part) || part)) fresh.classList.add("fresh");
    window.postroad.prepare(fresh);
    fresh.querySelectorAll(".scroll").forEach((one, at) => { if (offsets[at]) [one.scrollLeft, one.scrollTop] = offsets[at]; });
    if (focused < 0) return;
    const able = [...fresh.querySelectorAll(CAN_HAVE_FOCUS)];
    (able.find((one) => href && one.getAttribute("href") === href) || able[focused])?.focus({ preventScroll: true });
  }

  const keyOf = (row) => row.querySelector("a")?.getAttribute("href");

  /* What a part says. Its forms write the same CSRF token differently each time. */
  function withoutTokens(part) {
    const copy = part.cloneNode(true);
    copy.querySelectorAll("input[name=csrf_token]").forEach((one) => one.remove());
    return copy;
  }

  /* Times are left out: how long ago something was changes without news. */
  function contentOf(row) {
    const copy = withoutTokens(row);
    copy.querySelectorAll("time").forEach((one) => one.remove());
    return copy.innerHTML;
  }

  function updateRow(row, next) {
    const hadFocus = row.contains(document.activeElement);
    row.replaceChildren(...next.cloneNode(true).children);
    row.classList.add("fresh");
    window.postroad.prepare(row);
    if (hadFocus) row.querySelector("a")?.focus({ preventScroll: true });
  }

  /* Nothing moves under the pointer or the focus: rows that are new, and rows that are gone, wait behind the link. */
  function merge(part, fresh) {
    const body = part.querySelector("tbody");
    if (!body) { replace(part, fresh); return; }
    const shown = new Map([...body.rows].map((row) => [keyOf(row), row]));
    const rows = [...fresh.querySelectorAll("tbody tr")];
    const known = rows.filter((row) => shown.has(keyOf(row)));
    known.filter((row) => contentOf(row) !== contentOf(shown.get(keyOf(row)))).forEach((row) => updateRow(shown.get(keyOf(row)), row));
    /* What comes after the last known row has moved up from the next page. */
    const added = known.length ? rows.lastIndexOf(known.at(-1)) + 1 - known.length : rows.length;
    const pushedOut = fresh.querySelector("nav.more") ? added : 0;
    latest = fresh;
    offer(added, added && !known.length && pushedOut ? `${added}+ new` : added ? `${added} new` : "Refresh", shown.size - known.length > pushedOut);
  }

  function offer(added, text, isGone) {
    const link = document.querySelector("[data-new-rows]");
    if (!link) return;
    link.textContent = text;
    link.hidden = !added && !isGone;
  }

  document.addEventListener("click", (event) => {
    const pause = event.target.closest("[data-pause]");
    if (pause) {
      isPaused = !isPaused;
      pause.textContent = isPaused ? "Resume" : "Pause";
      if (!isPaused) changed();
    }
    const link = event.target.closest("[data-new-rows]");
    const part = latest && document.getElementById(latest.id);
    if (!link || !part || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    const place = latest;
    latest = null;
    link.hidden = true;
    replace(part, place);
    place.querySelector("[tabindex]")?.focus({ preventScroll: true });
  });

  /* At the end, the newest line stays in view; elsewhere nothing moves. */
  function append(part, fresh) {
    const box = part.parentElement;
    const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
    const known = new Set([...part.children].map((line) => line.dataset.key));
    part.append(...[...fresh.children].filter((line) => !known.has(line.dataset.key)));
    if (!isAtEnd) return;
    while (part.children.length > MAX_LINES) part.firstElementChild.remove();
    box.scrollTop = box.scrollHeight;
  }

  async function refresh() {
    const request = { headers: { "Accept": "text/html", "X-Refreshed": "page" }, signal: AbortSignal.timeout(FETCH_TIMEOUT) };
    const asked = location.href;
    const answer = await fetch(asked, request).catch(() => null);
    const text = answer && answer.ok && !answer.redirected ? await answer.text().catch(() => null) : null;
    /* A filter may have changed the page meanwhile. */
    if (text === null || isPaused || location.href !== asked) return;
    const next = new DOMParser().parseFromString(text, "text/html");
    /* An operator has begun or ended to view an account, in another tab: never mix the two. */
    if (next.body.dataset.account !== document.body.dataset.account) { location.reload(); return; }
    shown = next.body.dataset.fingerprint;
    parts(document).forEach((part) => {
      const fresh = next.getElementById(part.id);
      if (!fresh || busy(part)) return;
      if (part.dataset.live === "rows") merge(part, fresh);
      else if (part.dataset.live === "lines") append(part, fresh);
      else if (!withoutTokens(fresh).isEqualNode(withoutTokens(originals.get(part) || part))) replace(part, fresh);
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
    if (isPaused) return;
    if (asking) again = true;
    else if (!waiting) waiting = setTimeout(run, wait);
  }

  function close() { if (source) source.close(); source = null; }

  function listen() {
    if (document.hidden || source || !parts(document).length) return;
    source = new EventSource(`${address}?${new URLSearchParams({ since: shown })}`);
    source.addEventListener("changed", changed);
    /* The browser would reconnect by itself, and say what was shown at first. */
    source.addEventListener("error", () => {
      if (!source) return;
      setTimeout(listen, source.readyState === EventSource.CLOSED ? REFUSED_DELAY : RECONNECT_DELAY);
      close();
    });
  }

  if (!address) return;
  keep(document);
  document.addEventListener("replaced", (event) => {
    keep(event.detail);
    [isPaused, latest] = [false, null];
  });
  document.addEventListener("prepared", ({ detail: place }) => {
    place.querySelectorAll('[data-live="lines"]').forEach(({ parentElement: box }) => { box.scrollTop = box.scrollHeight; });
    place.querySelectorAll("[data-pause]").forEach((button) => { button.hidden = false; });
    listen();
  });
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else listen(); });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", listen);
})();
