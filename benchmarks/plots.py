"""Charts as SVG, written by hand: bars with their values, and lines over a few steps. Values in, a file's text out.

A chart is drawn on a white card of its own, so it reads the same on a light page and on a dark one. It names no font
that a reader may not have, runs no script, and loads nothing. Where a panel has a goal, a dashed line marks it.
"""

import dataclasses
import html
import math
import typing

# Points. Letters are counted, not measured, so this is the width of a wide average one at the size of labels.
LETTER = 6.7
PADDING = 20
TITLE_HEIGHT = 52
PANEL_TITLE_HEIGHT = 26
GOAL_HEIGHT = 18
BAR_HEIGHT, BAR_STEP = 18, 26
BARS_WIDTH = 430
VALUE_WIDTH = 96
LINES_WIDTH, LINES_HEIGHT = 560, 320
AXIS_WIDTH = 56
# Fewer and the lines cannot be read, more and they are a fence.
GRID_LINES = 4
# Where a logarithmic scale begins to be one.
LOGARITHMIC_FROM = 0.1
# Where an axis may end: parts of a power of ten whose quarters are short numbers.
CEILINGS = (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10)

INK, FAINT, GRID, CARD, EDGE = "#1f2328", "#59636e", "#d8dee4", "#ffffff", "#d0d7de"
OURS, THEIRS, GOAL = "#2f6fdb", "#9aa4b2", "#b93815"
LINE_COLOURS = ("#2f6fdb", "#0f8a5f", "#8250df", "#9a6700", "#bf3989")
STYLE = (
    "text{font-family:'Helvetica Neue',Helvetica,Arial,sans-serif;font-size:12px;fill:" + INK + "}"
    ".title{font-size:15px;font-weight:600}.panel{font-weight:600}.faint{fill:" + FAINT + "}"
    ".goal{fill:" + GOAL + ";font-size:11px}"
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One peer; `text` is what stands at the end of its bar."""

    label: str
    value: float
    text: str
    is_ours: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Where the goal of a panel is."""

    value: float
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Bars that are compared with each other."""

    title: str
    bars: tuple[Bar, ...]
    mark: Mark | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A chart of horizontal bars; all panels have one scale, which is logarithmic where values differ by powers."""

    title: str
    unit: str
    panels: tuple[Panel, ...]
    is_logarithmic: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One peer's value at each step, in the order of the chart's steps; None where there is none."""

    label: str
    values: tuple[float | None, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A chart of lines over steps that are named, not to scale. A goal is a part of each line's first value."""

    title: str
    unit: str
    steps_title: str
    steps: tuple[str, ...]
    lines: tuple[Line, ...]
    goal: float | None = None
    shows_values: bool = True  # at each point; of many steps the numbers would cover each other


Chart = Bars | Lines
Scale = typing.Callable[[float], float]


def svg(chart: Chart) -> str:
    """The text of the file."""
    return _bars(chart) if isinstance(chart, Bars) else _lines(chart)


def _bars(chart: Bars) -> str:
    bars = [bar for panel in chart.panels for bar in panel.bars]
    left = PADDING + LETTER * max((len(bar.label) for bar in bars), default=0) + 10
    most = max([bar.value for bar in bars] + [panel.mark.value for panel in chart.panels if panel.mark] + [0.0])
    parts: list[str] = []
    y = float(TITLE_HEIGHT)
    for panel in chart.panels:
        y += _panel(parts, panel, left=left, top=y, scale=_scale(most, is_logarithmic=chart.is_logarithmic))
    return _card(
        chart.title, unit=chart.unit, width=left + BARS_WIDTH + VALUE_WIDTH, height=y + PADDING / 2, parts=parts
    )


def _scale(most: float, *, is_logarithmic: bool) -> Scale:
    """The length of a bar. A logarithmic one begins below the smallest value that is worth a bar."""
    if most <= 0:
        return lambda _: 0.0
    if is_logarithmic:
        return lambda value: BARS_WIDTH * math.log1p(value / LOGARITHMIC_FROM) / math.log1p(most / LOGARITHMIC_FROM)
    return lambda value: BARS_WIDTH * value / most


def _panel(parts: list[str], panel: Panel, *, left: float, top: float, scale: Scale) -> float:
    """Draw a panel and say how high it is."""
    y = top
    if panel.title:
        parts.append(_text(PADDING, y + 16, panel.title, kind="panel"))
        y += PANEL_TITLE_HEIGHT
    y += GOAL_HEIGHT if panel.mark else 0
    bottom = y + BAR_STEP * len(panel.bars)
    parts.append(_rule(left, y, left, bottom, colour=GRID))
    tops = [y + BAR_STEP * number + (BAR_STEP - BAR_HEIGHT) / 2 for number in range(len(panel.bars))]
    parts.extend(_bar(bar, left=left, top=at, scale=scale) for bar, at in zip(panel.bars, tops, strict=True))
    if panel.mark:
        parts.extend(_mark(panel.mark, left=left, top=y, bottom=bottom, scale=scale))
    for bar, at in zip(panel.bars, tops, strict=True):
        middle = at + BAR_HEIGHT / 2 + 4
        parts.append(_text(left - 8, middle, bar.label, anchor="end"))
        parts.append(_text(left + scale(bar.value) + 6, middle, bar.text, haloed=True))
    return bottom - top + BAR_STEP / 2


def _bar(bar: Bar, *, left: float, top: float, scale: Scale) -> str:
    size = f'x="{left:.1f}" y="{top:.1f}" width="{scale(bar.value):.1f}" height="{BAR_HEIGHT}"'
    return f'<rect {size} rx="2" fill="{OURS if bar.is_ours else THEIRS}"/>'


def _mark(mark: Mark, *, left: float, top: float, bottom: float, scale: Scale) -> typing.Iterator[str]:
    x = left + scale(mark.value)
    yield _rule(x, top - 2, x, bottom, colour=GOAL, dashed=True)
    # The words go to the side where there is room for them.
    yield _text(x, top - 6, mark.text, kind="goal", anchor="end" if x - left > BARS_WIDTH / 2 else "start")


def _lines(chart: Lines) -> str:
    left, top = PADDING + AXIS_WIDTH, float(TITLE_HEIGHT + 8)
    most = max((value for line in chart.lines for value in line.values if value is not None), default=0.0)
    ceiling = _ceiling(most)
    scale = LINES_HEIGHT / ceiling
    parts: list[str] = []
    for number in range(GRID_LINES + 1):
        value = ceiling * number / GRID_LINES
        y = top + LINES_HEIGHT - value * scale
        parts.append(_rule(left, y, left + LINES_WIDTH, y, colour=GRID))
        parts.append(_text(left - 8, y + 4, f"{value:,.{int(value % 1 > 0)}f}", kind="faint", anchor="end"))
    places = [left + LINES_WIDTH * (number + 0.5) / len(chart.steps) for number in range(len(chart.steps))]
    for x, step in zip(places, chart.steps, strict=True):
        parts.append(_text(x, top + LINES_HEIGHT + 18, step, kind="faint", anchor="middle"))
    parts.append(
        _text(left + LINES_WIDTH / 2, top + LINES_HEIGHT + 38, chart.steps_title, kind="faint", anchor="middle")
    )
    values: list[str] = []
    for number, line in enumerate(chart.lines):
        colour = LINE_COLOURS[number % len(LINE_COLOURS)]
        points = [
            (x, top + LINES_HEIGHT - value * scale, value)
            for x, value in zip(places, line.values, strict=True)
            if value is not None
        ]
        parts += _line(points, colour=colour, has_dots=chart.shows_values)
        if chart.shows_values:
            values += (_text(x, y - 8, f"{value:,.0f}", anchor="middle", haloed=True) for x, y, value in points)
        if chart.goal is not None and points:
            y = top + LINES_HEIGHT - points[0][2] * chart.goal * scale
            parts.append(_rule(places[0], y, places[-1], y, colour=colour, dashed=True))
        parts += _key(line.label, colour=colour, top=top + LINES_HEIGHT + 54 + 20 * number)
    # Over all lines, so that none runs through a number.
    parts += values
    height = top + LINES_HEIGHT + 54 + 20 * len(chart.lines)
    if chart.goal is not None:
        words = f"dashed: the goal, {chart.goal:.0%} of the first value"
        parts.append(_text(PADDING, height + 12, words, kind="goal"))
        height += 20
    return _card(chart.title, unit=chart.unit, width=left + LINES_WIDTH + PADDING, height=height + 8, parts=parts)


def _line(points: typing.Sequence[tuple[float, float, float]], *, colour: str, has_dots: bool) -> typing.Iterator[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    if has_dots:
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y, _ in points)


def _key(label: str, *, colour: str, top: float) -> typing.Iterator[str]:
    yield f'<rect x="{PADDING}" y="{top:.1f}" width="12" height="12" rx="2" fill="{colour}"/>'
    yield _text(PADDING + 18, top + 10, label)


def _ceiling(most: float) -> float:
    """The round number at or above the largest value that leaves room for the number over its point."""
    wanted = max(most * 1.1, 1.0)
    step = 10.0 ** (len(str(int(wanted))) - 1)
    return next(step * times for times in CEILINGS if step * times >= wanted)


def _card(title: str, *, unit: str, width: float, height: float, parts: typing.Iterable[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    named = html.escape(f"{title}: {unit}")
    edge = f'width="{width - 1:.0f}" height="{height - 1:.0f}" rx="6" fill="{CARD}" stroke="{EDGE}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{named}">',
        f"<title>{named}</title>",
        f"<style>{STYLE}</style>",
        f'<rect x="0.5" y="0.5" {edge}/>',
        _text(PADDING, 24, title, kind="title"),
        _text(PADDING, 42, unit, kind="faint"),
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _text(x: float, y: float, words: str, *, kind: str = "", anchor: str = "start", haloed: bool = False) -> str:
    """A haloed one stays readable where a line runs behind it."""
    named = f' class="{kind}"' if kind else ""
    halo = f' stroke="{CARD}" stroke-width="3" paint-order="stroke"' if haloed else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}{halo}>{html.escape(words)}</text>'


def _rule(x1: float, y1: float, x2: float, y2: float, *, colour: str, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashes}/>'
