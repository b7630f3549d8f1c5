/* Charts of the overview, drawn by uPlot from the table below each of them, so that both always agree.
   <figure data-chart data-seconds="bucket length"> holds a .legend, a .chart and a table whose cells have data-value:
   the start of a bucket, then each series (data-color names its outcome, whose --…-fill in colors.css it has). Series are stacked. */
"use strict";
(function () {
  const HEIGHT = 220;
  const drawn = new Map();
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const fill = (name) => color(`${name}-fill`) || color(name);
  const number = (value) => value.toLocaleString("en");

  function read(figure) {
    const table = figure.querySelector("table");
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => Number(cell.dataset.value)));
    const colors = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.dataset.color);
    return { rows, colors };
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

  /* The legend shows the sums, or the values of the bucket under the pointer. */
  function legend(figure, rows, seconds) {
    const values = [...figure.querySelectorAll(".legend b")];
    const place = figure.querySelector(".legend-time");
    const whole = place.dataset.whole ??= place.textContent;
    const sums = values.map((_, at) => rows.reduce((sum, row) => sum + row[at + 1], 0));
    return (index) => {
      const row = rows[index];
      values.forEach((element, at) => { element.textContent = number(row ? row[at + 1] : sums[at]); });
      place.textContent = row ? shownTime(row[0], seconds, figure.dataset.zone) : whole;
    };
  }

  /* Sums from the bottom up; the highest is drawn first, and the lower ones over it. */
  function stacked(rows, count) {
    const sums = Array.from({ length: count }, () => []);
    for (const row of rows) row.slice(1).reduce((sum, value, at) => { sums[at].push(sum + value); return sum + value; }, 0);
    return sums.reverse();
  }

  function draw(figure) {
    const place = figure.querySelector(".chart");
    const seconds = Number(figure.dataset.seconds);
    const zone = figure.dataset.zone;
    const { rows, colors } = read(figure);
    const updateLegend = legend(figure, rows, seconds);
    const end = rows[rows.length - 1][0] + seconds;
    const line = { stroke: color("line"), width: 1 };
    const axis = { stroke: color("muted"), grid: line, ticks: line, font: `12px ${getComputedStyle(document.body).fontFamily}` };
    const bars = uPlot.paths.bars({ size: [0.75, 36], radius: 0.15 });
    place.hidden = false;
    let pointed = null;
    place.replaceChildren();
    drawn.set(figure, new uPlot({
      width: place.clientWidth || 300, height: HEIGHT, padding: [10, 22, 0, 0], legend: { show: false },
      tzDate: (moment) => uPlot.tzDate(new Date(moment * 1000), zone),
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { range: () => [rows[0][0], end] },
        y: { range: (_, least, most) => [0, Math.max(4, most * 1.08)] },
      },
      axes: [
        { ...axis, grid: { show: false }, size: 30, space: 64, values: (_, ticks) => ticks.map((at) => at >= end ? "" : isDaily(seconds) ? day(at + 43200, zone, DAY) : tick(at, zone)) },
        { ...axis, size: 52, space: 32, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7],
          values: (_, ticks) => ticks.map((value) => value >= 1e6 ? `${value / 1e6} M` : value >= 1e4 ? `${value / 1e3} k` : number(value)) },
      ],
      series: [{}, ...colors.slice().reverse().map((name) => ({ stroke: fill(name), fill: fill(name), width: 0, paths: bars, points: { show: false } }))],
      hooks: { setCursor: [(plot) => { pointed = plot.cursor.idx; updateLegend(pointed); }] },
    }, [rows.map((row) => row[0] + seconds / 2), ...stacked(rows, colors.length)], place));
    /* A bar leads where its row of the table leads. */
    place.querySelector(".u-over").addEventListener("click", () => {
      const link = figure.querySelectorAll("tbody tr")[pointed]?.querySelector("a");
      if (link) location.assign(link.href);
    });
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
