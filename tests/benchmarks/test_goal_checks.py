"""Goals are checked by their figures; peers are not, and noise puts every result in doubt."""

import pytest

from benchmarks import figures, goal_checks
from tests.benchmarks import samples


def goal(value: float, *, limit: float = 3, in_doubt: bool = False) -> goal_checks.Goal:
    return goal_checks.Goal(
        peer="SQLite", value=value, side="at least", limit=limit, unit="times Postfix", in_doubt=in_doubt
    )


def test_a_limit_itself_is_enough() -> None:
    assert [goal(value).is_reached for value in (2.99, 3.0, 3.01)] == [False, True, True]


def test_less_is_more_where_a_goal_says_at_most() -> None:
    held = goal_checks.Goal(peer="SQLite", value=251, side="at most", limit=250, unit="MB")
    assert not held.is_reached
    assert held.sentence() == "SQLite: 251 MB; the goal of at most 250 is NOT reached."


def test_a_sentence_says_what_was_measured_and_doubts_a_noisy_run() -> None:
    assert goal(3.5).sentence() == "SQLite: 3.50 times Postfix; the goal of at least 3 is reached."
    assert (
        goal(3.5, in_doubt=True)
        .sentence()
        .endswith("is reached (no proof: the machine was busy, or the rounds disagree).")
    )


def test_only_ours_is_checked_and_the_mark_is_a_multiple_of_the_reference() -> None:
    rounds = [
        samples.round_of("Postroad, SQLite", 2000),
        samples.round_of("Postfix", 1000),
        *(samples.round_of(peer, 90) for peer in ("Haraka", "Exim", "OpenSMTPD", "chasquid")),
    ]
    (checked,) = goal_checks.of_ratios(figures.summarise(rounds, reference="Postfix"), reference="Postfix", times=3)
    assert (checked.peer, checked.value, checked.mark) == ("Postroad, SQLite", 2.0, 3000)


def test_without_the_reference_nothing_is_checked() -> None:
    rounds = [samples.round_of("Postroad, SQLite", 2000)]
    assert goal_checks.of_ratios(figures.summarise(rounds, reference="Postfix"), reference="Postfix", times=3) == []


def test_noise_in_one_peer_puts_the_results_of_the_others_in_doubt() -> None:
    rounds = [samples.round_of("Postroad", 2000), samples.round_of("Postfix", 1000, noise=figures.NOISY_PERCENT + 1)]
    (checked,) = goal_checks.of_ratios(figures.summarise(rounds, reference="Postfix"), reference="Postfix", times=3)
    assert checked.in_doubt


def test_noise_in_a_peer_that_is_not_compared_says_nothing_about_the_ratio() -> None:
    rounds = [
        samples.round_of("Postroad", 2000),
        samples.round_of("Postfix", 1000),
        samples.round_of("Exim", 500, noise=figures.NOISY_PERCENT + 1),
    ]
    (checked,) = goal_checks.of_ratios(figures.summarise(rounds, reference="Postfix"), reference="Postfix", times=3)
    assert not checked.in_doubt


def test_a_share_is_shown_in_percent_of_the_rate_alone() -> None:
    alone, beside = figures.summarise([samples.round_of("alone", 1000), samples.round_of("beside", 960)], reference="")
    share = goal_checks.of_share(beside, alone=alone, percent=95, of_what="the rate alone")
    assert (share.value, share.mark, share.is_reached) == (96, 950, True)
    assert share.wish == "at least 95 % of the rate alone"


def test_rounds_on_both_sides_of_a_goal_put_it_in_doubt() -> None:
    for fastest, in_doubt in ((960, True), (940, False)):
        rounds = [
            samples.round_of("alone", 1000),
            *(samples.round_of("beside", rate) for rate in (900, 930, fastest)),
        ]
        alone, beside = figures.summarise(rounds, reference="")
        share = goal_checks.of_share(beside, alone=alone, percent=95, of_what="the rate alone")
        assert (share.is_reached, share.in_doubt) == (False, in_doubt)


def test_memory_is_the_most_of_the_service_alone_in_megabytes() -> None:
    rounds = [
        samples.round_of("Postroad", 1, memory=100),
        samples.round_of("Postroad", 1, memory=200),
        samples.round_of("Postfix", 1, memory=9000),
    ]
    (held,) = goal_checks.of_memory(rounds)
    assert held.value == pytest.approx(209.7, abs=0.1)
    assert held.is_reached
