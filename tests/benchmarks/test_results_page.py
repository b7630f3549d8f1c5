"""RESULTS.md shows the goals, the machine and every benchmark, from the JSON alone, and hides nothing."""

import pathlib

import pytest

from benchmarks import chapters, figures, results_page
from tests.benchmarks import samples


def page_of(folder: pathlib.Path) -> str:
    return results_page.write(folder).read_text()


def rows(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith("| ")]


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
