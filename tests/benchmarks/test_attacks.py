"""The table of `make fairness`: what reaches the goal, and where it is written."""

import pytest

from benchmarks.attacks import __main__ as fairness
from benchmarks.attacks import table, victim

ATTACK = table.Attack("flood", "sends much", lambda _: [])


def row(**measures: tuple[float, float]) -> fairness.Row:
    """An attack on a victim whose figures were 10 ms and 20 ms before, and are these during it."""
    idle = {name: victim.Figure(10, 20) for name in ("send", "delivery", "webhook", "page")}
    during = {name: victim.Figure(*figures) for name, figures in measures.items()}
    return fairness.Row(ATTACK, victim.Figures(idle, {}), victim.Figures(idle | during, {}), {"202": 1200, "429": 3}, 0)


def test_the_goal_is_twice_the_idle_figure_and_50_ms() -> None:
    assert row(send=(70, 90)).misses() == []
    assert row(send=(71, 90), page=(70, 91)).misses() == ["send", "page"]


def test_a_refusal_misses_the_goal_however_quick_it_is() -> None:
    refused = row()._replace(during=victim.Figures(row().before.by_measure, {"send 503": 4}))
    assert refused.misses() == ["4 send 503"]
    unmeasured = row()._replace(during=victim.Figures({}, {"send 421": 70}))
    assert unmeasured.misses() == ["send", "delivery", "webhook", "page", "70 send 421"]


def test_a_row_shows_the_victim_before_and_during_and_the_answers_to_the_attacker() -> None:
    assert row(send=(1500, 2000))._replace(grown_bytes=306_000_000).cells() == (
        "`flood`: sends much",
        "10 / 20 → 1,500 / 2,000",
        "10 / 20 → 10 / 20",
        "10 / 20 → 10 / 20",
        "10 / 20 → 10 / 20",
        "202: 1,200; 429: 3; store: +306 MB",
        "no: send",
    )


def test_the_section_of_the_page_is_replaced() -> None:
    begin, end = "<!-- fairness: begin; written by make fairness -->", "<!-- fairness: end -->"
    page = f"# Page\n\n{begin}\nold\n{end}\n\nMore.\n"
    assert fairness.replace_section(page, "new\nlines") == f"# Page\n\n{begin}\nnew\nlines\n{end}\n\nMore.\n"
    with pytest.raises(ValueError, match="there is no section"):
        fairness.replace_section("# Page\n", "new")
