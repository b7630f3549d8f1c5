"""How cost grows: the dearest size beside the smallest, the table, and the slowest query of all processes."""

import json
import pathlib

from benchmarks import growth_tables, query_times, results_page
from tests.benchmarks import samples


def figure(size: int, microseconds: float, *, store: str = "SQLite") -> growth_tables.Figure:
    return growth_tables.Figure(
        range="accounts",
        store=store,
        size=size,
        messages=1000,
        service_microseconds=microseconds,
        store_microseconds=0.0 if store == "SQLite" else 100.0,
        memory_mebibytes=80.4,
        query="accounts.lock",
        query_milliseconds=1.25,
        problems=(),
    )


def test_the_dearest_size_is_compared_with_the_smallest() -> None:
    figures = [figure(1000, 590), figure(1, 500), figure(100, 650), figure(1, 400, store="PostgreSQL")]
    (goal,) = growth_tables.goals(figures, in_doubt=False)
    assert goal.peer == "accounts, SQLite"
    assert goal.value == 130
    assert not goal.is_reached


def test_the_slowest_query_is_that_with_the_longest_median_of_all_processes(tmp_path: pathlib.Path) -> None:
    usual, late = query_times.class_of(0.001), query_times.class_of(0.1)
    counts = {"often.slow": {usual: 90}, "once.late": {usual - 20: 99, late: 1}, "rarely.late": {late: 99}}
    (tmp_path / "1.json").write_text(json.dumps(counts))
    (tmp_path / "2.json").write_text(json.dumps({"often.slow": {usual: 1, late: 9}}))
    found = query_times.slowest(tmp_path)
    assert found is not None
    assert (found.name, found.times) == ("often.slow", 100)
    assert 1.0 <= found.median < 1.1
    assert 100 <= found.longest < 110


def test_the_results_page_has_a_panel_for_each_range(tmp_path: pathlib.Path) -> None:
    figures = [figure(1, 1000), figure(10_000, 1500), figure(1, 900, store="PostgreSQL")]
    reported = growth_tables.reported(
        figures, facts=samples.FACTS, conditions="How.", gaps=["too large"], in_doubt=False
    )
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "growth.json").write_text(json.dumps(reported))
    page = results_page.write(tmp_path).read_text()
    assert (
        "| How cost grows: at most 120 % of the cost at the smallest size | accounts, SQLite: 150 | NOT reached |"
        in page
    )
    assert "- INCOMPLETE: too large" in page
    drawn = (tmp_path / "plots" / "growth.svg").read_text()
    assert ">accounts, SQLite<" in drawn
    assert ">accounts, PostgreSQL<" in drawn
    assert drawn.count("goal: at most 120% of the smallest size") == 1
