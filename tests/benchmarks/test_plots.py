"""Charts are well-formed SVG that loads nothing, show every value, and mark the goal where it is."""

import re
import xml.etree.ElementTree as ET

import pytest

from benchmarks import plots

SVG = "{http://www.w3.org/2000/svg}"


def read(drawn: str) -> ET.Element:
    return ET.fromstring(drawn)  # noqa: S314, because we drew it


def texts(drawn: str) -> list[str]:
    return [element.text or "" for element in read(drawn).iter(f"{SVG}text")]


def bar_widths(drawn: str) -> list[float]:
    bars = read(drawn).iter(f"{SVG}rect")
    return [float(bar.attrib["width"]) for bar in bars if bar.attrib["fill"] in (plots.OURS, plots.THEIRS)]


def panel(*values: float, mark: float | None = None, title: str = "") -> plots.Panel:
    bars = tuple(plots.Bar(label=f"peer {value:g}", value=value, text=f"{value:g}") for value in values)
    return plots.Panel(title=title, bars=bars, mark=None if mark is None else plots.Mark(value=mark, text="goal: more"))


def bars(*panels: plots.Panel) -> str:
    return plots.svg(plots.Bars(title="Accepts", unit="messages a second", panels=panels))


def lines(*values: float | None, goal: float | None = None) -> str:
    steps = tuple(f"{10**number:,}" for number in range(len(values)))
    line = plots.Line(label="SQLite", values=values)
    return plots.svg(
        plots.Lines(title="Backlog", unit="a second", steps_title="waiting", steps=steps, lines=(line,), goal=goal)
    )


def test_a_bar_is_as_long_as_its_value_beside_the_others() -> None:
    first, second = bar_widths(bars(panel(100, 50)))
    assert first == 2 * second


def test_panels_have_one_scale() -> None:
    first, second = bar_widths(bars(panel(100), panel(25)))
    assert first == 4 * second


def test_every_label_and_every_value_is_shown() -> None:
    reported = texts(bars(panel(100, 50, title="beside Postfix")))
    assert {"Accepts", "messages a second", "beside Postfix", "peer 100", "100", "peer 50", "50"} <= set(reported)


def test_a_goal_beyond_every_bar_makes_the_bars_shorter() -> None:
    drawn = bars(panel(100, mark=200))
    assert bar_widths(drawn) == [plots.BARS_WIDTH / 2]
    assert "goal: more" in texts(drawn)


def test_a_goal_is_a_dashed_line_at_its_value() -> None:
    drawn = read(bars(panel(100, mark=50)))
    (mark,) = (line for line in drawn.iter(f"{SVG}line") if line.attrib["stroke"] == plots.GOAL)
    (bar,) = (one for one in drawn.iter(f"{SVG}rect") if one.attrib["fill"] == plots.OURS)
    assert "stroke-dasharray" in mark.attrib
    assert float(mark.attrib["x1"]) - float(bar.attrib["x"]) == pytest.approx(plots.BARS_WIDTH / 2, abs=0.1)


def test_words_cannot_break_the_drawing() -> None:
    bar = plots.Bar(label='<script>&"', value=1, text="<1>")
    drawn = bars(plots.Panel(title="a & b", bars=(bar,)))
    assert {'<script>&"', "<1>", "a & b"} <= set(texts(drawn))


def test_nothing_measured_draws_an_empty_chart() -> None:
    assert "Accepts" in texts(bars(panel(0), panel()))
    assert "Backlog" in texts(lines())


def test_a_chart_loads_nothing_and_brings_its_own_background() -> None:
    for drawn in (bars(panel(1)), lines(1, 2)):
        assert not re.search(r"href|url\(|@import|<script", drawn)
        assert f'fill="{plots.CARD}"' in drawn


def test_a_line_leaves_out_what_was_not_measured() -> None:
    drawn = read(lines(1000, None, 900))
    (path,) = drawn.iter(f"{SVG}polyline")
    assert len(path.attrib["points"].split()) == 2


def test_the_axis_ends_above_the_largest_value() -> None:
    for most in (9, 99, 950, 1250, 2000, 87_000):
        axis = [float(text.replace(",", "")) for text in texts(lines(most)) if re.fullmatch(r"[\d,]+", text)]
        assert most < max(axis) <= most * 1.5


def test_a_goal_over_steps_is_a_part_of_the_first_value() -> None:
    drawn = read(lines(1000, 800, goal=0.9))
    (dashed,) = (line for line in drawn.iter(f"{SVG}line") if "stroke-dasharray" in line.attrib)
    first, second = (float(point.attrib["cy"]) for point in drawn.iter(f"{SVG}circle"))
    assert float(dashed.attrib["y1"]) == pytest.approx((first + second) / 2, abs=0.1)
    assert "dashed: the goal, 90% of the first value" in texts(lines(1000, 800, goal=0.9))
