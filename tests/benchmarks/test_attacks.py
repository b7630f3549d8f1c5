"""The table of `make fairness`: what reaches the goal, and where it is written."""

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
