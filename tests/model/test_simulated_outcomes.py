"""The prefix of the local part chooses the simulated outcome."""

import pytest

from postroad.model.mail.simulated_outcomes import REFUSALS, SimulatedOutcome, outcome_of


@pytest.mark.parametrize(
    "address, outcome",
    [
        ("bounce@example.net", SimulatedOutcome.BOUNCE),
        ("Bounced-17@example.net", SimulatedOutcome.BOUNCE),
        ("blocked+x@example.net", SimulatedOutcome.BLOCKED),
        ("defer@example.net", SimulatedOutcome.DEFER),
        ("DEFER2@example.net", SimulatedOutcome.DEFER),
        ("fail@example.net", SimulatedOutcome.FAIL),
        ("slow@example.net", SimulatedOutcome.SLOW),
        ("drop@example.net", SimulatedOutcome.DROP),
        ("jo@example.net", SimulatedOutcome.DELIVER),
        ("jo.bounce@example.net", SimulatedOutcome.DELIVER),
        ("jo@bounce.example", SimulatedOutcome.DELIVER),
        ("block@example.net", SimulatedOutcome.DELIVER),
        ("postmaster", SimulatedOutcome.DELIVER),
    ],
)
def test_the_beginning_of_the_local_part_decides(address: str, outcome: SimulatedOutcome) -> None:
    assert outcome_of(address) is outcome


def test_the_codes_are_those_that_the_documentation_promises() -> None:
    assert {outcome: (reply.code, reply.enhanced) for outcome, reply in REFUSALS.items()} == {
        SimulatedOutcome.BOUNCE: (550, "5.1.1"),
        SimulatedOutcome.BLOCKED: (550, "5.7.1"),
        SimulatedOutcome.FAIL: (451, "4.3.0"),
    }
