"""Charts are well-formed SVG that loads nothing, with bars as long as their values and the goal where it is."""

import re
import xml.etree.ElementTree as ET

import pytest

from benchmarks import plots

SVG = "{http://www.w3.org/2000/svg}"


def test_a_bar_is_as_long_as_its_value_and_the_goal_a_dashed_line() -> None:
    values = tuple(plots.Bar(label=f'<script>&"{value:g}', value=value, text=f"<{value:g}>") for value in (100, 50))
    panel = plots.Panel(title="a & b", bars=values, mark=plots.Mark(value=50, text="goal: more"))
    drawn = plots.svg(plots.Bars(title="Accepts", unit="messages a second", panels=(panel,)))
    read = ET.fromstring(drawn)  # noqa: S314, because we drew it
    texts = {element.text for element in read.iter(f"{SVG}text")}
    assert {'<script>&"100', "<50>", "a & b", "goal: more"} <= texts
    bars = [bar for bar in read.iter(f"{SVG}rect") if bar.attrib["fill"] in (plots.OURS, plots.THEIRS)]
    assert [float(bar.attrib["width"]) for bar in bars] == [plots.BARS_WIDTH, plots.BARS_WIDTH / 2]
    (mark,) = (line for line in read.iter(f"{SVG}line") if line.attrib["stroke"] == plots.GOAL)
    assert "stroke-dasharray" in mark.attrib
    assert float(mark.attrib["x1"]) - float(bars[0].attrib["x"]) == pytest.approx(plots.BARS_WIDTH / 2, abs=0.1)
    assert not re.search(r"href|url\(|@import|<script", drawn)
