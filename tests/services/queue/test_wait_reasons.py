"""Why a recipient is where it is: one sentence that an operator can act on."""

import dataclasses

import msgspec
import pytest

from postroad.services.queue import wait_reasons
from postroad.storage import provider_queues, queue_views, recipients

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
)
RECIPIENT = recipients.Recipient(
    "rcp_1", "em_1", "ada@example.net", "delivered", "settled", 1, 250, "2.0.0 taken", NOW, None
)


def status(state: str, reason: str = "connection refused", worker: str = "a:1:x") -> provider_queues.Status:
    return provider_queues.Status(worker, "google", state, reason, NOW + MINUTE, NOW)


def why(one: provider_queues.Status | None = None, **changes: object) -> str:
    return wait_reasons.why(msgspec.structs.replace(WAITING, **changes), one, now=NOW)


def test_one_that_waits_says_until_when_for_which_attempt_and_after_what() -> None:
    assert why() == "3rd attempt at 2027-01-15T08:04:00.000Z; deferred: 451 4.7.1 greylisted, come back"
    assert why(last_smtp_code=None, last_smtp_response=None) == "3rd attempt at 2027-01-15T08:04:00.000Z"


@pytest.mark.parametrize(
    "state, sentence",
    [
        (
            "blocked",
            "ready; the provider queue google is blocked until 2027-01-15T08:01:00.000Z: connection refused",
        ),
        ("paused", "ready; the provider queue google is paused until 2027-01-15T08:01:00.000Z: connection refused"),
        ("slowed", "ready; the provider queue google is slowed down: connection refused"),
    ],
)
def test_one_that_is_ready_says_what_its_provider_queue_waits_for(state: str, sentence: str) -> None:
    assert why(status(state), state=queue_views.READY) == sentence
    assert why(status(state, reason=""), state=queue_views.READY) == sentence.removesuffix(": connection refused")


def test_one_that_is_ready_and_may_go_says_so() -> None:
    assert why(state=queue_views.READY) == "ready; waiting for a free worker"


def test_one_that_is_being_sent_says_by_whom_and_whether_they_are_alive() -> None:
    sending, worker = queue_views.SENDING, "mail-1:42:a1b2c3d4"
    assert why(state=sending, worker=worker) == "being sent by mail-1:42 (lease until 2027-01-15T08:04:00.000Z)"
    gone = why(state=sending, worker=worker, due_at=NOW - 1)
    assert gone.startswith("the lease of mail-1:42 expired at ")


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


def test_the_worst_state_that_workers_report_for_a_provider_queue_counts() -> None:
    reported = [status("blocked", worker="a:1:x"), status("slowed", worker="b:1:x"), status("paused", worker="c:1:x")]
    assert wait_reasons.worst_statuses(reported)["google"].state == "blocked"


def test_words_are_one_line_and_name_their_code_once() -> None:
    assert wait_reasons.last_response(451, "451 try\r\nlater") == "451 try later"
    assert wait_reasons.last_response(None, "connection refused") == "connection refused"
    assert wait_reasons.last_response(250, None) == "250"
    assert wait_reasons.last_response(None, None) == ""
    assert len(wait_reasons.last_response(550, "no " * 1_000)) <= 200 + 4


def test_a_destination_cannot_give_orders_to_the_terminal() -> None:
    assert wait_reasons.shortened("550 \x1b[2J\x07gone\u202e") == "550 \ufffd[2J\ufffdgone\ufffd"


def test_users_of_the_account_see_nothing_of_hosts_and_of_mail_of_others() -> None:
    def reported(one: provider_queues.Status | None = None, **changes: object) -> str:
        return wait_reasons.explain_to_account(msgspec.structs.replace(WAITING, **changes), one, now=NOW)

    sending, worker = queue_views.SENDING, "mail-1:42:a1b2c3d4"
    assert reported() == "deferred: 451 4.7.1 greylisted, come back"
    assert reported(last_smtp_code=None, last_smtp_response=None) == "waiting for the next attempt"
    assert reported(state=sending, worker=worker) == "being sent"
    gone = reported(state=sending, worker=worker, due_at=NOW)
    assert gone == "worker stopped while sending; another one takes over"
    blocked = reported(status("blocked", reason="no more for <eve@others.example>"), state=queue_views.READY)
    assert blocked == "ready; the provider queue google is blocked"
    assert reported(state=queue_views.READY) == why(state=queue_views.READY)
