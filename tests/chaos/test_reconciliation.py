"""The reconciliation can fail: each guarantee that a forged snapshot breaks is reported by its check alone."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.chaos import reconciliation, sample_snapshot, snapshot
from tests.chaos.sample_snapshot import ADA, BOB, BODY

Change = Callable[[snapshot.Snapshot], dict[str, Any]]

# What is changed, and who must notice.
FORGED: dict[str, tuple[Change, Sequence[str]]] = {
    "a sender got two answers": (lambda _: {"problems": ["http-0: accepted twice"]}, ["answers"]),
    "an acknowledged message is lost": (
        lambda right: {
            "submissions": [*right.submissions, sample_snapshot.submission(key="http-1", message_id="em_2")]
        },
        ["stored"],
    ),
    "a recipient of a message is lost": (
        lambda _: {"submissions": [sample_snapshot.submission(recipients=(ADA, BOB, "eve@north.example.net"))]},
        ["stored"],
    ),
    "a key has two messages": (
        lambda right: {"messages": [*right.messages, snapshot.Message("em_2", "http-0", "delivered", 0)]},
        ["one message", "one charge", "charts agree"],
    ),
    "a message that nobody sent": (lambda _: {"submissions": []}, ["one message"]),
    "a key is charged twice": (
        lambda right: {"ledger": [*right.ledger, snapshot.Entry("reserve", -2, 2, "em_1")]},
        ["one charge", "credits agree"],
    ),
    "a charge has no message behind it": (
        lambda right: {"ledger": [*right.ledger, snapshot.Entry("reserve", -1, 1, "em_9")]},
        ["one charge"],
    ),
    "a key is missing": (lambda _: {"keys": []}, ["one charge"]),
    "a key refers to another message": (lambda _: {"keys": [snapshot.Key("http-0", "em_9")]}, ["one charge"]),
    "a bounce was not refunded": (
        lambda right: {"ledger": [*right.ledger[:2], snapshot.Entry("settle", 0, -1, "em_1")]},
        ["credits agree"],
    ),
    "an hourly count is too high": (
        lambda right: {"hours": [*right.hours, snapshot.Hour(delivered=1)]},
        ["charts agree"],
    ),
    "a message is not final": (
        lambda _: {"messages": [snapshot.Message("em_1", "http-0", "queued", 2)]},
        ["final"],
    ),
    "a recipient is not final": (
        lambda right: {"recipients": [right.recipients[0], sample_snapshot.recipient(BOB, status="deferred")]},
        ["credits agree", "charts agree", "final", "events"],
    ),
    "postroad verify finds something": (lambda _: {"inconsistencies": ["balances: account acc_1"]}, ["consistency"]),
    "a delivered recipient was not accepted": (lambda _: {"taken": {}}, ["delivered"]),
    "a bounced recipient was accepted": (lambda _: {"taken": {ADA: 1, BOB: 1}}, ["delivered"]),
    "an accepted recipient is not in the store": (
        lambda _: {"taken": {ADA: 1, "eve@north.example.net": 1}},
        ["delivered"],
    ),
    "nobody refused what bounced": (lambda _: {"refused": {}}, ["not delivered"]),
    "a doubled message without a doubt": (lambda _: {"taken": {ADA: 2}}, ["copies"]),
    "more copies than doubts": (lambda _: {"taken": {ADA: 3}, "taken_over": {"rcp_1": 1}}, ["copies"]),
    "an event never arrived": (lambda right: {"received": {"evt_2": right.received["evt_2"]}}, ["events"]),
    "an event was never written": (
        lambda right: {"events": right.events[:1], "received": {"evt_1": [BODY]}},
        ["events"],
    ),
    "an event was written twice": (
        lambda right: {
            "events": [*right.events, sample_snapshot.event("evt_3", delivery_id="whd_1")],
            "received": {**right.received, "evt_3": [BODY]},
        },
        ["events"],
    ),
    "an event has the wrong type": (
        lambda right: {"events": [sample_snapshot.event(type="email.failed"), right.events[1]]},
        ["events"],
    ),
    "an event has other bytes": (lambda right: {"received": {**right.received, "evt_1": [b"{}"]}}, ["genuine"]),
    "an event that nobody wrote": (lambda right: {"received": {**right.received, "evt_9": [b"{}"]}}, ["genuine"]),
    "a signature is wrong": (lambda _: {"not_genuine": ["the signature does not match the secret"]}, ["genuine"]),
    "an event came more often than it was tried": (
        lambda right: {"received": {**right.received, "evt_1": [BODY, BODY]}},
        ["webhook retries"],
    ),
    "an event is marked succeeded and no attempt succeeded": (
        lambda right: {
            "webhook_attempt_log": [snapshot.WebhookAttempt("whd_1", 1, 500, None), right.webhook_attempt_log[1]]
        },
        ["webhook retries"],
    ),
    "a process ended by itself": (lambda _: {"ended_badly": ["all, life 3: ended with 1"]}, ["processes"]),
    "a process logged a fault": (lambda _: {"errors": ["role_failed"]}, ["processes"]),
}


def broken(seen: snapshot.Snapshot) -> list[str]:
    return [check.name for check in reconciliation.reconcile(seen) if check.findings]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    seen = sample_snapshot.right()
    assert broken(seen) == []
    assert all(check.examined for check in reconciliation.reconcile(seen))


@pytest.mark.parametrize("forged", FORGED)
def test_a_broken_guarantee_is_reported_by_its_check(forged: str) -> None:
    seen = sample_snapshot.right()
    change, noticed_by = FORGED[forged]
    for name, value in change(seen).items():
        setattr(seen, name, value)
    assert broken(seen) == noticed_by


def test_every_check_is_made_to_fail() -> None:
    failed = {name for _, noticed_by in FORGED.values() for name in noticed_by}
    assert failed == {check.name for check in reconciliation.reconcile(sample_snapshot.right())}


@pytest.mark.parametrize(
    "doubt",
    [{"taken_over": {"rcp_1": 1}}, {"attempts": [sample_snapshot.attempt(), sample_snapshot.attempt(in_doubt=1)]}],
)
def test_a_second_copy_is_allowed_where_the_log_has_a_doubt(doubt: dict[str, Any]) -> None:
    seen = sample_snapshot.right()
    seen.taken = {ADA: 2}
    for name, value in doubt.items():
        setattr(seen, name, value)
    assert broken(seen) == []


def test_an_event_may_fail_after_all_its_attempts_and_not_before() -> None:
    seen = sample_snapshot.right()
    seen.received = {"evt_2": seen.received["evt_2"]}
    seen.events = [sample_snapshot.event(state="failed", attempt_count=7), seen.events[1]]
    failures = [snapshot.WebhookAttempt("whd_1", number, None, "interrupted: lost") for number in range(1, 8)]
    seen.webhook_attempt_log = [*failures, seen.webhook_attempt_log[1]]
    assert broken(seen) == []
    seen.webhook_attempt_log = seen.webhook_attempt_log[1:]
    assert broken(seen) == ["events"]


def test_a_recipient_fails_only_after_all_its_attempts() -> None:
    seen = sample_snapshot.right()
    seen.recipients = [sample_snapshot.recipient(status="failed"), seen.recipients[1]]
    assert "not delivered" in broken(seen)
    seen.attempts = [sample_snapshot.attempt(verdict="retry") for _ in range(seen.mail_attempts)]
    assert "not delivered" not in broken(seen)


def test_a_submission_without_an_answer_may_be_stored_or_not() -> None:
    seen = sample_snapshot.right()
    seen.submissions = [
        sample_snapshot.submission(message_id=None, is_abandoned=True),
        sample_snapshot.submission(key="http-1", message_id=None),
    ]
    assert broken(seen) == []


def test_a_finding_has_the_whole_trace_of_its_message() -> None:
    seen = sample_snapshot.right()
    lines = [{"event": "recipient_delivered", "message_id": "em_1"}, {"event": "elsewhere", "message_id": "em_2"}]
    trace = "\n".join(snapshot.trace(seen, "em_1", lines))
    for part in ("http-0", ADA, BOB, "taken 1", "refused 1", "reserve", "evt_1", "recipient_delivered"):
        assert part in trace
    assert "elsewhere" not in trace
