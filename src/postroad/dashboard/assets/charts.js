/* Charts of the overview, drawn by uPlot from the table below each of them, so that both always agree.
   <figure data-chart data-seconds="bucket length"> holds a .chart and a table whose cells have data-value: the start of a
   bucket, then each series. data-color names the outcome of a series, whose --…-fill in colors.css it has: these are
   stacked bars. data-color="rate" is a line of percentages, with an axis of its own at the right. */
"use strict";
(function () {
  const HEIGHT = 220;
  /* Bars of the highest bucket and a rate of 100% end at the same height. */
  const HEADROOM = 1.08;
  const drawn = new Map();
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const fill = (name) => color(`${name}-fill`) || color("accent");
  const number = (value) => value.toLocaleString("en");

  /* A cell without a number, such as the rate of an hour without results, is a gap. */
  const valueOf = (cell) => cell.dataset.value ? Number(cell.dataset.value) : null;

  function read(figure) {
    const table = figure.querySelector("table");
    const cells = [...table.tBodies[0].rows].map((row) => [...row.cells]);
    const heads = [...table.tHead.rows[0].cells].slice(1);
    const columns = heads.map((head, at) => ({
      name: head.textContent, color: head.dataset.color, values: cells.map((row) => valueOf(row[at + 1])), texts: cells.map((row) => row[at + 1].textContent),
    }));
    return { starts: cells.map((row) => valueOf(row[0])), links: cells.map((row) => row[0].querySelector("a")), columns };
  }

  const DAY = { month: "short", day: "numeric" };
  const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

  /* Everything is in the zone of the page. A day may begin with the hour before its midnight, so its noon names it. */
  const isDaily = (seconds) => seconds >= 86400;
  const day = (moment, zone, format) => new Date(moment * 1000).toLocaleDateString("en", { ...format, timeZone: zone });
  const time = (moment, zone) => new Date(moment * 1000).toLocaleTimeString("en", { ...TIME, timeZone: zone });

  /* Midnight as a date, other times as a time. */
  function tick(moment, zone) {
    const shown = time(moment, zone);
    return shown === "00:00" ? day(moment, zone, DAY) : shown;
  }

  function shownTime(start, seconds, zone) {
    if (isDaily(seconds)) return day(start + 43200, zone, { weekday: "short", ...DAY });
    return `${day(start, zone, DAY)}, ${time(start, zone)} – ${time(start + seconds, zone)}`;
  }

  /* Sums from the bottom up; the highest is drawn first, and the lower ones over it. */
  function stacked(bars) {
    const sums = [];
    for (const { values } of bars) sums.unshift(values.map((value, at) => value + (sums.length ? sums[0][at] : 0)));
    return sums;
  }

  const element = (name, text, kind = "") => Object.assign(document.createElement(name), { textContent: text, className: kind });

  /* The values of a bucket beside the pointer, and for the keyboard: the arrow keys move it, and Enter opens its messages. */
  function describe(figure, place, { starts, links, columns }) {
    const tip = element("div", "", "chart-tip");
    const title = (at) => shownTime(starts[at], Number(figure.dataset.seconds), figure.dataset.zone);
    let pointed = null;
    tip.hidden = true;
    place.append(tip);
    place.tabIndex = 0;
    Object.entries({ role: "slider", "aria-label": figure.querySelector("h2").textContent, "aria-valuemin": 0, "aria-valuemax": starts.length - 1 })
      .forEach(([name, value]) => place.setAttribute(name, value));

    function name(at) {
      place.setAttribute("aria-valuenow", at);
      place.setAttribute("aria-valuetext", [title(at), ...columns.map((column) => `${column.name} ${column.texts[at]}`)].join(", "));
    }

    function show(plot) {
      pointed = plot.cursor.idx;
      tip.hidden = pointed === null;
      if (tip.hidden) return;
      name(pointed);
      const rows = columns.map((column) => {
        const row = element("p", "");
        row.append(element("span", column.name, `key key-${column.color}`), element("b", column.texts[pointed]));
        return row;
      });
      tip.replaceChildren(element("p", title(pointed), "chart-tip-title"), ...rows);
      const left = plot.over.offsetLeft + plot.cursor.left;
      const isRight = left > place.clientWidth / 2;
      tip.style.left = `${isRight ? left - tip.offsetWidth - 12 : left + 12}px`;
    }

    function move(plot, to) {
      const at = Math.min(Math.max(to, 0), starts.length - 1);
      plot.setCursor({ left: plot.valToPos(plot.data[0][at], "x"), top: 0 });
    }

    const follow = () => { if (pointed !== null) location.assign(links[pointed].href); };
    const leave = (plot) => plot.setCursor({ left: -10, top: -10 });
    name(starts.length - 1);
    /* A touch shows the values; the table has the links. */
    place.onclick = (event) => { if (event.pointerType !== "touch") follow(); };
    place.onblur = () => leave(drawn.get(figure));
    place.onkeydown = (event) => {
      const plot = drawn.get(figure);
      const last = starts.length - 1;
      const at = pointed ?? last + 1;
      const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
      if (event.key === "Enter") follow();
      else if (event.key === "Escape") leave(plot);
      else if (event.key in steps) { event.preventDefault(); move(plot, steps[event.key]); }
    };
    return show;
  }

  function draw(figure) {
    const place = figure.querySelector(".chart");
    const seconds = Number(figure.dataset.seconds);
    const zone = figure.dataset.zone;
    const table = read(figure);
    const bars = table.columns.filter((column) => column.color !== "rate");
    const rates = table.columns.filter((column) => column.color === "rate");
    const begin = table.starts[0];
    const end = table.starts.at(-1) + seconds;
    const line = { stroke: color("line"), width: 1 };
    const axis = { stroke: color("muted"), grid: line, ticks: line, font: `12px ${getComputedStyle(document.body).fontFamily}` };
    const paths = uPlot.paths.bars({ size: [0.75, 36], radius: 0.15 });
    place.hidden = false;
    place.replaceChildren();
    const show = describe(figure, place, table);
    drawn.set(figure, new uPlot({
      width: place.clientWidth || 300, height: HEIGHT, padding: [10, rates.length ? 0 : 22, 0, 0], legend: { show: false },
      tzDate: (moment) => uPlot.tzDate(new Date(moment * 1000), zone),
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { range: () => [begin, end] },
        y: { range: (_, least, most) => [0, Math.max(4, most * HEADROOM)] },
        rate: { range: () => [0, 100 * HEADROOM] },
      },
      axes: [
        { ...axis, grid: { show: false }, size: 30, space: 64, values: (_, ticks) => ticks.map((at) => at >= end ? "" : isDaily(seconds) ? day(at + 43200, zone, DAY) : tick(at, zone)) },
        { ...axis, size: 52, space: 32, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7],
          values: (_, ticks) => ticks.map((value) => value >= 1e6 ? `${value / 1e6} M` : value >= 1e4 ? `${value / 1e3} k` : number(value)) },
        ...rates.map(() => ({ ...axis, scale: "rate", side: 1, grid: { show: false }, size: 52, incrs: [25, 50], values: (_, ticks) => ticks.map((value) => `${value}%`) })),
      ],
      series: [
        {},
        ...bars.map((bar) => ({ stroke: fill(bar.color), fill: fill(bar.color), width: 0, paths, points: { show: false } })).reverse(),
        ...rates.map((rate) => ({ scale: "rate", stroke: fill(rate.color), width: 2, spanGaps: true, points: { show: false } })),
      ],
      hooks: { setCursor: [show] },
    }, [table.starts.map((start) => start + seconds / 2), ...stacked(bars), ...rates.map((rate) => rate.values)], place));
  }

  function forget(figure) {
    const plot = drawn.get(figure);
    if (plot) plot.destroy();
    drawn.delete(figure);
  }

  /* Charts that have left the page are destroyed, with their listeners. */
  function prepare(place) {
    [...drawn.keys()].filter((figure) => !figure.isConnected).forEach(forget);
    place.querySelectorAll("figure[data-chart]").forEach((figure) => { forget(figure); draw(figure); });
  }

  const again = () => prepare(document);
  new ResizeObserver(() => drawn.forEach((plot, figure) => {
    const width = figure.querySelector(".chart").clientWidth;
    if (width && plot.width !== width) plot.setSize({ width, height: HEIGHT });
  })).observe(document.querySelector("main"));
  document.addEventListener("prepared", (event) => prepare(event.detail));
  document.addEventListener("theme", again);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  prepare(document);
  /* Canvas text keeps the font it was drawn with. */
  if (document.fonts.status !== "loaded") document.fonts.ready.then(again);
})();
