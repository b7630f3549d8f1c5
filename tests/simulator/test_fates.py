"""The name of a simulated recipient decides its fate."""

import pytest

from postroad.simulator.fates import REFUSALS, Fate, fate_of


@pytest.mark.parametrize(
    "address, fate",
    [
        ("bounce@example.net", Fate.BOUNCE),
        ("Bounced-17@example.net", Fate.BOUNCE),
        ("blocked+x@example.net", Fate.BLOCKED),
        ("defer@example.net", Fate.DEFER),
        ("DEFER2@example.net", Fate.DEFER),
        ("fail@example.net", Fate.FAIL),
        ("slow@example.net", Fate.SLOW),
        ("drop@example.net", Fate.DROP),
        ("jo@example.net", Fate.DELIVER),
        ("jo.bounce@example.net", Fate.DELIVER),
        ("jo@bounce.example", Fate.DELIVER),
        ("block@example.net", Fate.DELIVER),
        ("postmaster", Fate.DELIVER),
    ],
)
def test_the_beginning_of_the_local_part_decides(address: str, fate: Fate) -> None:
    assert fate_of(address) is fate


def test_the_codes_are_those_that_the_documentation_promises() -> None:
    assert {fate: (reply.code, reply.enhanced) for fate, reply in REFUSALS.items()} == {
        Fate.BOUNCE: (550, "5.1.1"),
        Fate.BLOCKED: (550, "5.7.1"),
        Fate.FAIL: (451, "4.3.0"),
    }
