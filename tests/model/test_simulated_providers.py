"""The simulator's providers reply in their own codes, and the classifier reads the replies as it reads theirs."""

import pytest

from postroad.model.bounces import disposition
from postroad.model.mail import simulated_outcomes
from postroad.model.mail.simulated_outcomes import (
    REFUSALS,
    ProviderBehaviour,
    SimulatedOutcome,
    SimulatedProvider,
    outcome_of,
)
from postroad.protocol.smtp import values

DELIVERED, BOUNCED, RETRY = (
    disposition.Verdict.DELIVERED,
    disposition.Verdict.BOUNCED,
    disposition.Verdict.RETRY,
)
# What a first attempt comes to: the basic and the enhanced code, the verdict, and the reason.
FIRST: dict[str, tuple[int | None, str, disposition.Verdict, str]] = {
    "google/accepted": (250, "2.0.0", DELIVERED, "delivered"),
    "google/slow": (250, "2.0.0", DELIVERED, "delivered"),
    "google/rate_limited": (421, "4.7.28", RETRY, "rate_limited"),
    "google/greylisted": (451, "4.7.0", RETRY, "greylisted"),
    "google/unavailable": (None, "", RETRY, "connection_timed_out"),
    "google/mailbox_full": (452, "4.2.2", RETRY, "mailbox_full"),
    "google/unknown_user": (550, "5.1.1", BOUNCED, "unknown_address"),
    "google/blocked": (550, "5.7.1", BOUNCED, "spam_suspected"),
    "google/unauthenticated": (550, "5.7.26", BOUNCED, "not_authenticated"),
    "microsoft/accepted": (250, "2.6.0", DELIVERED, "delivered"),
    "microsoft/slow": (250, "2.6.0", DELIVERED, "delivered"),
    "microsoft/rate_limited": (421, "", RETRY, "rate_limited"),
    "microsoft/greylisted": (451, "4.7.1", RETRY, "greylisted"),
    "microsoft/unavailable": (None, "", RETRY, "connection_timed_out"),
    "microsoft/mailbox_full": (554, "5.2.2", BOUNCED, "mailbox_full"),
    "microsoft/unknown_user": (550, "5.5.0", BOUNCED, "unknown_address"),
    "microsoft/blocked": (550, "5.7.1", BOUNCED, "ip_blocked"),
    "microsoft/unauthenticated": (550, "5.7.515", BOUNCED, "not_authenticated"),
    "yahoo/accepted": (250, "", DELIVERED, "delivered"),
    "yahoo/slow": (250, "", DELIVERED, "delivered"),
    "yahoo/rate_limited": (421, "4.7.0", RETRY, "rate_limited"),
    "yahoo/greylisted": (451, "4.7.1", RETRY, "greylisted"),
    "yahoo/unavailable": (None, "", RETRY, "connection_timed_out"),
    "yahoo/mailbox_full": (552, "5.2.2", BOUNCED, "mailbox_full"),
    "yahoo/unknown_user": (554, "", BOUNCED, "unknown_address"),
    "yahoo/blocked": (553, "5.7.1", BOUNCED, "ip_blocked"),
    "yahoo/unauthenticated": (554, "5.7.9", BOUNCED, "not_authenticated"),
    "apple/accepted": (250, "2.0.0", DELIVERED, "delivered"),
    "apple/slow": (250, "2.0.0", DELIVERED, "delivered"),
    "apple/rate_limited": (450, "4.7.1", RETRY, "rate_limited"),
    "apple/greylisted": (450, "4.2.0", RETRY, "greylisted"),
    "apple/unavailable": (None, "", RETRY, "connection_timed_out"),
    "apple/mailbox_full": (552, "5.2.2", BOUNCED, "mailbox_full"),
    "apple/unknown_user": (550, "5.1.1", BOUNCED, "unknown_address"),
    "apple/blocked": (554, "5.7.1", BOUNCED, "policy_refused"),
    "apple/unauthenticated": (550, "5.7.1", BOUNCED, "not_authenticated"),
}


def played(name: str, *, attempts: int = 0) -> tuple[int | None, str, disposition.Verdict, str]:
    attempt = simulated_outcomes.provider_attempt(name, attempts=attempts)
    assert attempt is not None
    reply, found = attempt.result.reply, disposition.classify(attempt.result)
    return reply.code if reply else None, reply.enhanced if reply else "", found.verdict, found.reason


def test_every_provider_plays_every_behaviour() -> None:
    names = [
        simulated_outcomes.provider_of(provider, behaviour)
        for provider in SimulatedProvider
        for behaviour in ProviderBehaviour
    ]
    assert {name: played(name) for name in names} == FIRST


@pytest.mark.parametrize("provider", SimulatedProvider)
def test_a_provider_that_asks_for_patience_accepts_in_the_end(provider: SimulatedProvider) -> None:
    reasons = {
        behaviour: [played(f"{provider}/{behaviour}", attempts=attempts)[3] for attempts in range(4)]
        for behaviour in ("rate_limited", "greylisted", "unavailable")
    }
    assert reasons == {
        "rate_limited": ["rate_limited", "rate_limited", "delivered", "delivered"],
        "greylisted": ["greylisted", "delivered", "delivered", "delivered"],
        "unavailable": ["connection_timed_out"] * 4,
    }


def test_an_attempt_names_its_host_and_how_long_it_takes() -> None:
    slow, blocked = (simulated_outcomes.provider_attempt(f"apple/{name}", attempts=0) for name in ("slow", "blocked"))
    assert slow is not None
    assert blocked is not None
    assert (slow.host, slow.seconds, slow.result.stage) == ("apple.simulator.invalid", 3.0, values.Stage.CONTENT)
    assert (blocked.seconds, blocked.result.stage) == (0.0, values.Stage.CONTENT)


def test_a_behaviour_of_a_later_version_is_not_played() -> None:
    assert simulated_outcomes.provider_attempt("google/asleep", attempts=0) is None
    assert simulated_outcomes.provider_attempt("", attempts=0) is None


# The prefix of the local part chooses the simulated outcome.


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
