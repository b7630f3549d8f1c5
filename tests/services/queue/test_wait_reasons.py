"""Why a recipient is where it is: a code, and one sentence that people can act on."""

import dataclasses
import pathlib
import re

import msgspec
import pytest

from postroad.services.queue import wait_reasons
from postroad.storage.mail import delivery_controls, messages, queue_views
from postroad.storage.operations import processes

NOW = 1_800_000_000_000_000
MINUTE = 60_000_000
WAITING = queue_views.QueuedRecipient(
    account_id="acc_1",
    message_id="em_1",
    recipient_id="rcp_1",
    queue_key="example.net acc_1",
    email="ada@example.net",
    attempt_count=2,
    lost_leases=0,
    state=queue_views.WAITING,
    queued_at=NOW - 10 * MINUTE,
    due_at=NOW + 4 * MINUTE,
    worker=None,
    last_smtp_code=451,
    last_smtp_response="4.7.1 greylisted,\n  come back",
    provider_queue="google",
    enhanced_code="4.7.1",
    attempt_reason="greylisted",
)
NOT_ATTEMPTED = {
    "attempt_count": 0,
    **dict.fromkeys(("last_smtp_code", "provider_queue", "enhanced_code", "attempt_reason")),
}
RECIPIENT = messages.Recipient(
    "rcp_1", "em_1", "ada@example.net", "delivered", "settled", 1, 250, "2.0.0 taken", NOW, None
)


def status(state: str, name: str = "google", reason: str = "no more for <eve@others.example>") -> processes.QueueStatus:
    return processes.QueueStatus("mail-1:42:a1b2c3d4", name, state, reason, NOW + MINUTE, NOW)


def explained(
    one: processes.QueueStatus | None = None, *, ahead: int | None = None, **changes: object
) -> wait_reasons.WaitReason:
    return wait_reasons.explain(msgspec.structs.replace(WAITING, **changes), one, now=NOW, ahead=ahead)


def detail(
    one: processes.QueueStatus | None = None, *, hold: delivery_controls.Hold | None = None, **changes: object
) -> str:
    return wait_reasons.detail(msgspec.structs.replace(WAITING, **changes), one, now=NOW, hold=hold)


def test_a_deferral_names_the_provider_its_code_the_next_attempt_and_how_many_are_ahead() -> None:
    reason = explained(ahead=312, enhanced_code="4.7.28")
    assert (reason.code, reason.next_attempt_at, reason.ahead) == ("deferred", NOW + 4 * MINUTE, 312)
    assert reason.text == "Google asked us to try later (4.7.28)"
    assert (
        reason.sentence
        == "Google asked us to try later (4.7.28); next attempt at 2027-01-15 08:04:00 UTC; 312 recipients ahead"
    )


@pytest.mark.parametrize(
    "changes, code, text",
    [
        ({}, "deferred", "Google asked us to try later (4.7.1)"),
        ({"enhanced_code": ""}, "deferred", "Google asked us to try later (451)"),
        ({"provider_queue": "mx.example.net"}, "deferred", "example.net asked us to try later (4.7.1)"),
        (
            {"provider_queue": "upstream:relay"},
            "deferred",
            "the upstream server of this service asked us to try later (4.7.1)",
        ),
        (
            {"last_smtp_code": None, "enhanced_code": "", "attempt_reason": "connection_refused"},
            "no_reply",
            "the last attempt got no reply from Google",
        ),
        (
            {"last_smtp_code": None, "provider_queue": "", "attempt_reason": "dns_failed"},
            "no_reply",
            "the last attempt got no reply from example.net",
        ),
        (
            {"last_smtp_code": 535, "provider_queue": "upstream:relay", "attempt_reason": "configuration"},
            "configuration",
            "a setting of this service is wrong; its operator has to correct it",
        ),
        (NOT_ATTEMPTED, "scheduled", "scheduled by the sender"),
    ],
)
def test_one_that_waits_says_for_what_and_until_when(changes: dict[str, object], code: str, text: str) -> None:
    reason = explained(**changes)  # type: ignore[arg-type]
    assert (reason.code, reason.text, reason.next_attempt_at) == (code, text, NOW + 4 * MINUTE)
    assert reason.sentence == f"{text}; next attempt at 2027-01-15 08:04:00 UTC"


@pytest.mark.parametrize(
    "state, code, text, next_attempt_at",
    [
        ("blocked", "provider_unreachable", "the mail servers of Google do not answer", NOW + MINUTE),
        ("paused", "provider_paused", "Google asked us to slow down; mail to it is paused", NOW + MINUTE),
        ("slowed", "provider_slowed", "mail to Google is slowed down to what it accepts", None),
    ],
)
def test_one_that_is_ready_says_what_its_provider_queue_waits_for(
    state: str, code: str, text: str, next_attempt_at: int | None
) -> None:
    reason = explained(status(state), state=queue_views.READY, ahead=2)
    assert (reason.code, reason.text, reason.next_attempt_at, reason.ahead) == (code, text, next_attempt_at, 2)
    # The time of a pause that is over says nothing any more.
    over = msgspec.structs.replace(status(state), until=NOW)
    assert explained(over, state=queue_views.READY).next_attempt_at is None
    # The worst state that workers report counts.
    reported = [status("blocked"), status("slowed"), status("paused")]
    assert wait_reasons.worst_statuses(reported)["google"].state == "blocked"


@pytest.mark.parametrize("state", ["blocked", "paused"])
def test_an_upstream_that_takes_no_mail_is_not_the_providers_doing(state: str) -> None:
    reason = explained(status(state, "upstream:relay"), state=queue_views.READY)
    assert (reason.code, reason.next_attempt_at) == ("upstream_unavailable", NOW + MINUTE)
    assert reason.text == "the upstream server of this service is not available"
    slowed = explained(status("slowed", "upstream:relay"), state=queue_views.READY)
    assert slowed.text == "mail to the upstream server of this service is slowed down to what it accepts"


@pytest.mark.parametrize(
    "ahead, code, sentence",
    [
        (None, "ready", "ready; waiting for a free worker"),
        (0, "ready", "ready; waiting for a free worker"),
        (1, "queued", "waiting for its turn; 1 recipient ahead"),
        (1_000, "queued", "waiting for its turn; 1,000 recipients ahead"),
        (1_001, "queued", "waiting for its turn; more than 1,000 recipients ahead"),
    ],
)
def test_one_that_may_go_says_how_many_are_before_it(ahead: int | None, code: str, sentence: str) -> None:
    for changes in ({"state": queue_views.READY}, {"due_at": NOW}):  # due, and not noticed yet
        reason = explained(ahead=ahead, **changes)
        assert (reason.code, reason.sentence, reason.next_attempt_at) == (code, sentence, None)


def test_one_that_is_being_sent_or_held_has_no_time_and_nobody_ahead() -> None:
    sending, worker = queue_views.SENDING, "mail-1:42:a1b2c3d4"
    for changes, code, text in (
        ({"state": sending, "worker": worker}, "sending", "being sent"),
        (
            {"state": sending, "worker": worker, "due_at": NOW},
            "interrupted",
            "the worker stopped while sending; another one takes over",
        ),
        ({"state": queue_views.HELD}, "held", "held by the operator of this service"),
    ):
        reason = explained(status("blocked"), ahead=7, **changes)
        assert (reason.code, reason.sentence, reason.next_attempt_at, reason.ahead) == (code, text, None, None)


def test_operators_see_workers_replies_and_the_reason_of_a_hold_besides() -> None:
    sending, worker = queue_views.SENDING, "mail-1:42:a1b2c3d4"
    assert detail() == "last result: 451 4.7.1 greylisted, come back"
    assert detail(last_smtp_code=None, last_smtp_response=None) == ""
    assert detail(state=queue_views.READY) == ""
    assert detail(status("paused"), state=queue_views.READY) == "last error: no more for <eve@others.example>"
    assert detail(status("paused", reason=""), state=queue_views.READY) == ""
    assert detail(state=sending, worker=worker) == "by mail-1:42, whose lease ends at 2027-01-15 08:04:00 UTC"
    gone = detail(state=sending, worker=worker, due_at=NOW)
    assert gone == "by mail-1:42, whose lease ended at 2027-01-15 08:00:00 UTC"
    hold = delivery_controls.Hold("acc_1", "", "moving house", NOW)
    assert detail(state=queue_views.HELD, hold=hold) == "since 2027-01-15 08:00:00 UTC: moving house"
    reason = dataclasses.replace(explained(), detail=detail())
    assert reason.sentence == (
        "Google asked us to try later (4.7.1); next attempt at 2027-01-15 08:04:00 UTC; "
        "last result: 451 4.7.1 greylisted, come back"
    )


def test_every_code_has_a_text_and_its_row_in_the_documentation() -> None:
    section = pathlib.Path("docs/api.md").read_text().partition("### When a recipient is tried next")[2]
    documented = re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.MULTILINE)
    assert documented == list(wait_reasons.Code) == list(wait_reasons._TEXTS)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({}, "delivered at 2027-01-15T08:00:00.000Z: 250 2.0.0 taken"),
        (
            {"status": "bounced", "delivered_at": None, "bounced_at": NOW, "last_smtp_code": 550},
            "bounced at 2027-01-15T08:00:00.000Z: 550 2.0.0 taken",
        ),
        (
            {"status": "failed", "delivered_at": None, "last_smtp_code": None, "last_smtp_response": None},
            "failed",
        ),
        ({"status": "queued"}, "not final, but not in the queue; run 'postroad verify'"),
    ],
)
def test_one_that_is_final_says_how_it_ended(changes: dict[str, object], sentence: str) -> None:
    assert wait_reasons.explain_final(dataclasses.replace(RECIPIENT, **changes)) == sentence  # type: ignore[arg-type]


def test_words_are_one_line_and_name_their_code_once() -> None:
    for code, response, text in (
        (451, "451 try\r\nlater", "451 try later"),
        (None, "connection refused", "connection refused"),
        (250, None, "250"),
        (None, None, ""),
    ):
        assert wait_reasons.last_response(code, response) == text
    assert len(wait_reasons.last_response(550, "no " * 1_000)) <= 200 + 4
    # A destination cannot give orders to the terminal.
    assert wait_reasons.shortened("550 \x1b[2J\x07gone\u202e") == "550 \ufffd[2J\ufffdgone\ufffd"
