"""RESULTS.md shows the goals, the machine and every benchmark, from the JSON alone, and hides nothing."""

import json
import pathlib

import pytest

from benchmarks import chapters, figures, goal_checks, results_page
from tests.benchmarks import samples


def page_of(folder: pathlib.Path) -> str:
    return results_page.write(folder).read_text()


def rows(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith("| ")]


def test_a_goal_that_all_reach_is_reached(tmp_path: pathlib.Path) -> None:
    result = samples.report_of(samples.round_of("Postroad", 4000), samples.round_of("Postfix", 1000))
    samples.write(tmp_path, result)
    assert "| Accepts: at least 3 times Postfix | Postroad: 4.00 | reached |" in rows(page_of(tmp_path))


@pytest.mark.parametrize("rates, outcome", [((4000, 2000), "reached by 1 of 2"), ((2000, 1000), "NOT reached")])
def test_a_goal_that_some_or_none_reach_says_so(
    tmp_path: pathlib.Path, rates: tuple[float, float], outcome: str
) -> None:
    ours = [samples.round_of(f"Postroad, {number}", rate) for number, rate in enumerate(rates)]
    samples.write(tmp_path, samples.report_of(*ours, samples.round_of("Postfix", 1000)))
    (row,) = (row for row in rows(page_of(tmp_path)) if row.startswith("| Accepts: at least 3"))
    assert row.endswith(f"| {outcome} |")


def test_a_noisy_run_proves_nothing(tmp_path: pathlib.Path) -> None:
    noisy = samples.round_of("Postroad", 4000, noise=figures.NOISY_PERCENT + 1)
    samples.write(tmp_path, samples.report_of(noisy, samples.round_of("Postfix", 1000)))
    page = page_of(tmp_path)
    assert "| Postroad: 4.00 | reached (no proof: the machine was busy, or the rounds disagree) |" in page
    assert "- NOISE, Postroad: in 1 of 1 rounds" in page


def test_problems_and_gaps_stand_beside_the_figures(tmp_path: pathlib.Path) -> None:
    lost = samples.round_of("Haraka", 100, problems=("1000 messages were accepted, but 999 are stored",))
    result = samples.report_of(lost)
    result.gaps.append("there is nothing to compare with")
    samples.write(tmp_path, result)
    page = page_of(tmp_path)
    assert "- PROBLEM, Haraka: 1000 messages were accepted, but 999 are stored" in page
    assert "- INCOMPLETE: there is nothing to compare with" in page


def test_what_was_not_measured_is_named(tmp_path: pathlib.Path) -> None:
    page = page_of(tmp_path)
    for chapter in chapters.ALL:
        heading = chapter.name.replace("_", " ").capitalize()
        row = f"| {heading}: {chapter.goal} | not measured | not measured |"
        assert (row in page) == bool(chapter.goal)
        assert f"## {heading}\n\n{chapter.about}\n\nNot measured yet: `{chapter.target}`." in page


def test_a_goal_that_could_not_be_checked_is_named(tmp_path: pathlib.Path) -> None:
    samples.write(tmp_path, samples.report_of(samples.round_of("Postroad", 4000)))
    assert "| Accepts: at least 3 times Postfix | not measured | not measured |" in page_of(tmp_path)


def test_memory_is_one_row_with_the_worst_of_all_benchmarks(tmp_path: pathlib.Path) -> None:
    samples.write(tmp_path, samples.report_of(samples.round_of("Postroad", 1, memory=50)))
    samples.write(tmp_path, samples.report_of(samples.round_of("Postroad, signed", 1, memory=300)), name="deliver")
    (row,) = (row for row in rows(page_of(tmp_path)) if "Memory of the service" in row)
    assert "315 at the most (Accepts; Postroad, signed)" in row
    assert row.endswith("| reached by 1 of 2 |")


def test_each_result_says_when_and_of_what_it_was_taken(tmp_path: pathlib.Path) -> None:
    samples.write(tmp_path, samples.report_of(samples.round_of("Postroad", 1)))
    later = {"measured": "2026-11-02 10:00 UTC", "commit": "def, with changes in src"}
    samples.write(tmp_path, samples.report_of(samples.round_of("Postroad", 1), facts=later), name="deliver")
    page = page_of(tmp_path)
    assert "measured 2026-11-01 10:00 UTC, commit abc." in page
    assert "measured 2026-11-02 10:00 UTC, commit def, with changes in src." in page


def test_a_fact_that_differs_stands_with_the_figures_it_belongs_to(tmp_path: pathlib.Path) -> None:
    samples.write(tmp_path, samples.report_of(samples.round_of("Postroad", 1), facts={"kernel": "6.1"}))
    other = samples.report_of(samples.round_of("Postroad", 1), facts={"kernel": "6.2"})
    samples.write(tmp_path, other, name="deliver")
    page = page_of(tmp_path)
    assert "| cores | 2 |" in page
    assert "| kernel |" not in page
    assert "- Here kernel is 6.1." in page
    assert "- Here kernel is 6.2." in page


def test_every_result_has_its_chart_with_the_goal_in_it(tmp_path: pathlib.Path) -> None:
    result = samples.report_of(samples.round_of("Postroad", 4000), samples.round_of("Postfix", 1000))
    samples.write(tmp_path, result)
    page = page_of(tmp_path)
    assert "![Accepts](plots/accept.svg)" in page
    drawn = (tmp_path / "plots" / "accept.svg").read_text()
    assert "goal: at least 3 times Postfix" in drawn


def test_a_backlog_becomes_lines_over_what_waits(tmp_path: pathlib.Path) -> None:
    rounds = [
        samples.round_of(f"SQLite, {waiting} waiting{what}", rate)
        for what in ("", ", accepts alone")
        for waiting, rate in (("0", 1000), ("10,000", 990))
    ]
    samples.write(tmp_path, samples.report_of(*rounds), name="backlog_growth")
    page_of(tmp_path)
    drawn = (tmp_path / "plots" / "backlog_growth.svg").read_text()
    assert drawn.count("<polyline") == 2
    for words in ("SQLite<", "SQLite, accepts alone<", ">10,000<"):
        assert words in drawn


def test_large_messages_are_checked_against_their_own_limit_alone(tmp_path: pathlib.Path) -> None:
    result = samples.report_of(samples.round_of("Postroad", 1, memory=600))
    result.goals.append(goal_checks.Goal(peer="Postroad", value=900, side="at most", limit=1000, unit="MB"))
    samples.write(tmp_path, result, name="memory")
    page = page_of(tmp_path)
    assert "| Accepts: at most 1000 MB | Postroad: 900 | reached |" in page
    assert "Memory of the service" not in page


def test_of_the_dashboard_only_the_slowest_pages_are_shown(tmp_path: pathlib.Path) -> None:
    pages = [
        {"peer": "sqlite", "page": name, "slowest": slowest, "first": first, "cpu": slowest / 2, "rest_percent": rest}
        for name, slowest, first, rest in (("overview", 20.0, 90.0, 1.0), ("search", 301.0, 30.0, 2.0))
    ]
    (tmp_path / "results").mkdir()
    reported = {"facts": samples.FACTS, "remarks": ["One page is late."], "figures": pages}
    (tmp_path / "results" / "dashboard.json").write_text(json.dumps(reported))
    page = page_of(tmp_path)
    assert "| SQLite | 2 | 301.0 | search | 90.0 | overview | 150.5 | search |" in page
    assert "| SQLite: 301 | NOT reached |" in page
    pages[0]["rest_percent"] = 50.0
    (tmp_path / "results" / "dashboard.json").write_text(json.dumps(reported))
    assert "| SQLite: 301 | NOT reached (no proof: the machine was busy, or the rounds disagree) |" in page_of(tmp_path)


def test_each_command_has_its_own_limit(tmp_path: pathlib.Path) -> None:
    goal = {"side": "at most", "unit": "ms", "mark": None, "in_doubt": False}
    reported = {
        "facts": samples.FACTS,
        "rows": [["command", "best ms", "median ms", "CPU ms"], ["`postroad --help`", "60", "70", "65"]],
        "goals": [
            {**goal, "peer": "postroad --help", "value": 70.0, "limit": 150.0},
            {**goal, "peer": "postroad account list", "value": 401.0, "limit": 400.0},
        ],
    }
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "commands.json").write_text(json.dumps(reported))
    page = page_of(tmp_path)
    assert "| `postroad --help` | 60 | 70 | 65 |" in page
    assert "| Short commands: at most 150 ms | postroad --help: 70.0 | reached |" in page
    assert "| Short commands: at most 400 ms | postroad account list: 401 | NOT reached |" in page
    chart = (tmp_path / "plots" / "commands.svg").read_text()
    assert "goal: at most 150 ms" in chart
    assert "goal: at most 400 ms" in chart


def test_of_the_costs_the_dearest_phase_comes_first(tmp_path: pathlib.Path) -> None:
    reported = {
        "facts": samples.FACTS,
        "gaps": [],
        "costs": [
            {"path": "over HTTP", "microseconds": {"parse": 80.0, "store": 100.0}, "problems": []},
            {
                "path": "end to end",
                "microseconds": {"send": 120.4, "parse": 70.0, "sign": 0.0},
                "problems": ["one lost"],
            },
        ],
    }
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "costs.json").write_text(json.dumps(reported))
    page = page_of(tmp_path)
    table = page[page.index("| phase |") :].splitlines()
    assert table[0] == "| phase | over HTTP: µs | end to end: µs |"
    assert table[2:6] == ["| send | 0 | 120 |", "| store | 100 | 0 |", "| parse | 80 | 70 |", "| all | 180 | 190 |"]
    assert "- PROBLEM, end to end: one lost" in page
    assert ">end to end: 190 in all<" in (tmp_path / "plots" / "costs.svg").read_text()


def test_the_results_in_the_repository_can_be_rendered(tmp_path: pathlib.Path) -> None:
    kept = pathlib.Path(results_page.__file__).parent / "results"
    (tmp_path / "results").symlink_to(kept)
    page = page_of(tmp_path)
    for chapter in chapters.ALL:
        assert (kept / f"{chapter.name}.json").exists() == (f"plots/{chapter.name}.svg" in page)


def test_a_peer_that_is_faster_than_we_are_is_named(tmp_path: pathlib.Path) -> None:
    rounds = [
        samples.round_of("Postroad, SQLite", 2000),
        samples.round_of("Postroad, PostgreSQL", 1200),
        samples.round_of("Postfix", 1000),
        samples.round_of("Exim", 1500),
    ]
    samples.write(tmp_path, samples.report_of(*rounds))
    page = results_page.write(tmp_path).read_text()
    assert "- NOT FIRST, Postroad, PostgreSQL: Exim is 1.25 times as fast.\n" in page
    assert page.count("NOT FIRST") == 1
