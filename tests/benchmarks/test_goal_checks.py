"""Goals are checked by their figures; peers are not, and noise puts every result in doubt."""

from benchmarks import figures, goal_checks
from tests.benchmarks import samples


def goal(value: float, *, limit: float = 3, in_doubt: bool = False) -> goal_checks.Goal:
    return goal_checks.Goal(
        peer="SQLite", value=value, side="at least", limit=limit, unit="times Postfix", in_doubt=in_doubt
    )


def test_a_limit_itself_is_enough() -> None:
    assert [goal(value).is_reached for value in (2.99, 3.0, 3.01)] == [False, True, True]


def test_only_ours_is_checked_and_the_mark_is_a_multiple_of_the_reference() -> None:
    rounds = [
        samples.round_of("Postroad, SQLite", 2000),
        samples.round_of("Postfix", 1000),
        *(samples.round_of(peer, 90) for peer in ("Haraka", "Exim", "OpenSMTPD", "chasquid")),
    ]
    (checked,) = goal_checks.of_ratios(figures.summarise(rounds, reference="Postfix"), reference="Postfix", times=3)
    assert (checked.peer, checked.value, checked.mark) == ("Postroad, SQLite", 2.0, 3000)


def test_noise_in_one_peer_puts_the_results_of_the_others_in_doubt() -> None:
    rounds = [samples.round_of("Postroad", 2000), samples.round_of("Postfix", 1000, noise=figures.NOISY_PERCENT + 1)]
    (checked,) = goal_checks.of_ratios(figures.summarise(rounds, reference="Postfix"), reference="Postfix", times=3)
    assert checked.in_doubt


def test_rounds_on_both_sides_of_a_goal_put_it_in_doubt() -> None:
    for fastest, in_doubt in ((960, True), (940, False)):
        rounds = [
            samples.round_of("alone", 1000),
            *(samples.round_of("beside", rate) for rate in (900, 930, fastest)),
        ]
        alone, beside = figures.summarise(rounds, reference="")
        share = goal_checks.of_share(beside, alone=alone, percent=95, of_what="the rate alone")
        assert (share.is_reached, share.in_doubt) == (False, in_doubt)
