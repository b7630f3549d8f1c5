"""Attempts, what was said in them, and asynchronous bounces: read back as they were written, each once."""

from typing import Any

import msgspec
import pytest

from postroad.storage.engine.store import ConstraintViolated, Store, Transaction
from postroad.storage.mail import attempts, messages
from postroad.storage.operations import retention
from tests.storage import samples

NOW = 1_800_000_000_000_000


def attempt(recipient_id: str = "rcp_1", *, started_at: int = NOW, **changes: Any) -> attempts.Attempt:
    one = attempts.Attempt(
        account_id="acc_1",
        message_id="em_1",
        recipient_id=recipient_id,
        started_at=started_at,
        duration=1_500,
        provider_queue="mx.example.net",
        host="mx.example.net",
        address="2001:db8::1",
        tls="TLSv1.3 verified",
        stage="recipient",
        verdict="bounced",
        fault="address",
        reason="unknown_address",
        smtp_code=550,
        enhanced_code="5.1.1",
        response="nobody here: Grüße 🌍",
        in_doubt=0,
    )
    return msgspec.structs.replace(one, **changes)


async def insert(store: Store, *rows: attempts.Attempt) -> None:
    async with store.transaction() as tx:
        await attempts.insert(tx, rows)


async def of_message(store: Store, message_id: str = "em_1", *, account_id: str = "acc_1") -> list[attempts.Attempt]:
    async with store.reading() as tx:
        return await attempts.of_message(tx, account_id, message_id)


async def test_attempts_come_back_as_they_were_recipient_by_recipient_in_order(store: Store) -> None:
    rows = [
        attempt("rcp_2", started_at=NOW + 1),
        attempt("rcp_1", started_at=NOW + 2, verdict="delivered", fault=None, reason="delivered", smtp_code=250),
        attempt("rcp_1", host="", address="", tls="", smtp_code=None, enhanced_code="", verdict="retry", in_doubt=1),
    ]
    await insert(store, *rows)
    assert await of_message(store) == [rows[2], rows[1], rows[0]]


async def test_the_latest_ends_of_each_message_and_the_last_of_each_recipient(store: Store) -> None:
    rows = [
        attempt(recipient_id=recipient, started_at=at, duration=5, response=f"{recipient} at {at}")
        for recipient, at in (("rcp_1", 10), ("rcp_2", 20), ("rcp_1", 30))
    ]
    await insert(store, *rows, attempt(message_id="em_2", recipient_id="rcp_3", started_at=7, duration=1))
    async with store.reading() as tx:
        latest = await attempts.latest_ends(tx, "acc_1", ["em_1", "em_2"], limit=2, characters=8)
        last = await attempts.last_ends(tx, "acc_1", ["em_1", "em_2"])
        assert await attempts.last_ends(tx, "acc_2", ["em_1"]) == {}
    assert [(one.recipient_id, one.at, one.response) for one in latest[:2]] == [
        ("rcp_1", 35, "rcp_1 at"),
        ("rcp_2", 25, "rcp_2 at"),
    ]
    assert [one.recipient_id for one in latest[2:]] == ["rcp_3"]
    assert last == {"rcp_1": 35, "rcp_2": 25, "rcp_3": 8}


async def test_an_attempt_that_is_offered_twice_is_kept_once_as_it_was_first(store: Store) -> None:
    await insert(store, attempt())
    await insert(store, attempt(response="another word"), attempt(started_at=NOW + 1))
    assert await of_message(store) == [attempt(), attempt(started_at=NOW + 1)]


async def test_other_messages_and_accounts_are_not_shown(store: Store) -> None:
    await insert(store, attempt(), attempt(message_id="em_2"), attempt(account_id="acc_2"))
    assert await of_message(store) == [attempt()]
    assert await of_message(store, account_id="acc_2") == [attempt(account_id="acc_2")]
    assert await of_message(store, "em_3") == []


@pytest.mark.parametrize("changes", [{"verdict": "unknown"}, {"in_doubt": 2}])
async def test_the_store_refuses_what_is_no_attempt(store: Store, changes: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"(?i)check"):
        await insert(store, attempt(**changes))
    assert await of_message(store) == []


async def test_the_latest_refusals_of_an_account_come_newest_first_with_their_addresses(store: Store) -> None:
    verdicts = ("bounced", "retry", "failed", "delivered", "bounced", "bounced")
    rows = [attempt(f"rcp_{place}", started_at=NOW + place, verdict=verdict) for place, verdict in enumerate(verdicts)]
    await insert(store, *rows, attempt("rcp_9", started_at=NOW + 9, account_id="acc_2"))
    async with store.transaction() as tx:
        known = [samples.recipient("em_1", place, id=f"rcp_{place}") for place in range(len(verdicts))]
        await messages.insert_recipients(tx, known)
        found = await attempts.latest_refused(tx, "acc_1", limit=3)
        assert await attempts.latest_refused(tx, "acc_3", limit=3) == []
    assert [one.recipient_id for one in found] == ["rcp_5", "rcp_4", "rcp_2"]
    response, reason = "nobody here: Grüße 🌍", "unknown_address"
    assert found[2] == attempts.FinalRefusal(
        "em_1", "rcp_2", "Person2@example.org", NOW + 2, "failed", "address", reason, 550, response
    )


async def test_of_a_message_that_was_retried_again_and_again_the_latest_attempts_are_read(store: Store) -> None:
    await insert(store, *(attempt("rcp_2", started_at=NOW + place) for place in range(1_500)))
    await insert(store, *(attempt("rcp_1", started_at=NOW + 1_000 + place) for place in range(501)))
    read = await of_message(store)
    assert len(read) == 2_000
    assert [(one.recipient_id, one.started_at - NOW) for one in (read[0], read[500], read[501], read[-1])] == [
        ("rcp_1", 1_000),
        ("rcp_1", 1_500),
        ("rcp_2", 1),
        ("rcp_2", 1_499),
    ]


async def test_a_conversation_is_stored_once_and_goes_with_its_message(tx: Transaction) -> None:
    await samples.add_account(tx)
    await messages.insert(tx, [samples.message("em_1")])
    assert await attempts.conversations(tx, "acc_1", "em_1", limit=9) == {}
    for text in ("S: 220 hello", "a repeated record changes nothing"):
        await attempts.insert_conversations(tx, [(attempt("rcp_em_1_0", started_at=1), text)])
    said = {("rcp_em_1_0", 1): "S: 220 hello"}
    assert await attempts.conversations(tx, "acc_1", "em_1", limit=9) == said
    assert await attempts.conversations(tx, "acc_1", "em_1", limit=0) == {}
    assert await attempts.conversations(tx, "acc_2", "em_1", limit=9) == {}
    await messages.finish(tx, [("acc_1", "em_1", "failed", "released", 5)])
    await retention.remove_bodies(tx, ended_before=5)
    assert await retention.remove_messages(tx, ended_before=5) == 1
    assert await attempts.conversations(tx, "acc_1", "em_1", limit=9) == {}


def bounce(recipient_id: str, received_at: int = samples.NOW, account_id: str = "acc_1") -> attempts.AsyncBounce:
    return attempts.AsyncBounce(account_id, "em_1", recipient_id, received_at, "failed", "5.1.1", "address", "550 no")


async def test_addressees_are_the_recipients_of_the_message(tx: Transaction) -> None:
    await messages.insert_recipients(tx, [samples.recipient("em_1", number) for number in (1, 0)])
    await messages.insert_recipients(tx, [samples.recipient("em_2"), samples.recipient("em_1", account_id="acc_2")])
    found = await attempts.addressees(tx, "acc_1", "em_1")
    assert found == [
        attempts.ReportedRecipient(f"rcp_em_1_{number}", f"person{number}@example.org", "queued") for number in (0, 1)
    ]


async def test_reports_come_back_by_recipient_and_time(tx: Transaction) -> None:
    rows = [bounce("rcp_1"), bounce("rcp_1", samples.NOW + 1), bounce("rcp_2")]
    await attempts.insert_async_bounces(tx, [rows[2], rows[1], rows[0], bounce("rcp_1", account_id="acc_2")])
    await attempts.insert_async_bounces(tx, [])
    assert await attempts.async_bounces(tx, "acc_1", "em_1") == rows
    assert await attempts.async_bounces(tx, "acc_1", "em_2") == []


async def test_the_provider_queue_of_the_last_attempt_is_that_of_a_report(tx: Transaction) -> None:
    await attempts.insert(
        tx, [attempt(provider_queue="google"), attempt(started_at=samples.NOW + 1, provider_queue="yahoo")]
    )
    # Without an attempt, and of another account.
    others = [bounce("rcp_2"), bounce("rcp_1", account_id="acc_2")]
    await attempts.insert_async_bounces(tx, [bounce("rcp_1"), *others])

    async def found(action: str, after: str, before: str) -> list[str]:
        return await attempts.reported_at(tx, "acc_1", action, after=after, before=before, limit=10)

    assert await found("failed", "em_1", "em_2") == ["yahoo"]
    assert await found("complaint", "em_1", "em_2") == []
    assert await found("failed", "em_0", "em_1") == []


async def test_a_recipient_has_one_report_a_microsecond(store: Store) -> None:
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await attempts.insert_async_bounces(tx, [bounce("rcp_1"), bounce("rcp_1")])
