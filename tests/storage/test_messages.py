"""Messages, their recipients and their keys: written in batches, read by their account alone, listed by cursor."""

from collections.abc import Sequence

import pytest

from postroad.storage.engine.store import ConstraintViolated, Store, Transaction
from postroad.storage.mail import message_search, messages
from tests.storage import samples


async def write(store: Store, *new: messages.NewMessage) -> None:
    async with store.transaction() as tx:
        await messages.insert(tx, new)


async def page(
    store: Store, *clauses: message_search.Clause, account_id: str = "acc_1", **chosen: str
) -> Sequence[str]:
    wanted = message_search.Filter(**{"after": "", "before": "em_~", **chosen}, clauses=clauses)  # type: ignore[arg-type]
    async with store.scanning() as tx:
        return [m.id for m in await message_search.page(tx, account_id, wanted, limit=3)]


async def test_a_message_is_stored_as_it_was_accepted(store: Store) -> None:
    new = samples.message("em_1", recipient_count=3, size=11, tags=("one", "two"))
    await write(store, new)
    async with store.reading() as tx:
        stored = await messages.by_id(tx, "acc_1", "em_1")
        assert await messages.response(tx, "acc_1", "em_1") == (new.response, "req_em_1")
        assert await messages.body(tx, "acc_1", "em_1") == new.mime
    assert stored == messages.Message(
        "em_1", "acc_1", "api", new.sender, new.subject, "queued", "reserved", 3, 3, 11, "req_em_1", samples.NOW
    )
    assert await samples.count(store, "message_tags") == 2


async def test_another_account_sees_nothing_of_it(store: Store) -> None:
    await write(store, samples.message("em_1", tags=("tag",)))
    async with store.reading() as tx:
        assert await messages.by_id(tx, "acc_2", "em_1") is None
        assert await messages.response(tx, "acc_2", "em_1") is None
        assert await messages.body(tx, "acc_2", "em_1") is None
    tagged = (message_search.Condition(message_search.Kind.TAG, "tag"),)
    assert await page(store, account_id="acc_2") == await page(store, tagged, account_id="acc_2") == []
    assert await page(store, tagged) == ["em_1"]


async def test_the_same_message_twice_is_refused_with_all_that_came_with_it(store: Store) -> None:
    with pytest.raises(ConstraintViolated):
        await write(store, samples.message("em_1"), samples.message("em_2"), samples.message("em_1"))
    for table in ("messages", "bodies", "message_tags"):
        assert await samples.count(store, table) == 0


async def test_pages_go_back_in_time_from_a_cursor(store: Store) -> None:
    await write(store, *[samples.message(f"em_{number}") for number in range(7)])
    assert await page(store) == ["em_6", "em_5", "em_4"]
    assert await page(store, before="em_4") == ["em_3", "em_2", "em_1"]
    assert await page(store, before="em_1") == ["em_0"]
    assert await page(store, after="em_2", before="em_5") == ["em_4", "em_3", "em_2"]


async def test_the_account_of_a_message_is_found(tx: Transaction) -> None:
    for number in range(5):
        await samples.add_account(tx, f"acc_{number}")
    await messages.insert(tx, [samples.message("em_1", "acc_3"), samples.message("em_2", "acc_0")])
    assert await messages.account_of(tx, "em_1") == "acc_3"
    assert await messages.account_of(tx, "em_2") == "acc_0"
    assert await messages.account_of(tx, "em_3") is None


async def test_recipients_come_back_queued_and_in_order(tx: Transaction) -> None:
    await messages.insert_recipients(tx, [samples.recipient("em_1", number) for number in (2, 0, 1)])
    await messages.insert_recipients(tx, [])
    found = await messages.recipients(tx, "acc_1", "em_1")
    assert await messages.recipients(tx, "acc_2", "em_1") == []
    assert await messages.recipients(tx, "acc_1", "em_2") == []
    assert [recipient.email for recipient in found] == [f"Person{number}@example.org" for number in range(3)]
    assert found[0] == messages.Recipient(
        "rcp_em_1_0", "em_1", "Person0@example.org", "queued", "reserved", 0, None, None, None, None
    )


async def test_the_same_recipient_twice_is_refused(store: Store) -> None:
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await messages.insert_recipients(tx, [samples.recipient("em_1"), samples.recipient("em_1")])


async def test_resends_are_listed_newest_first_for_their_account(tx: Transaction) -> None:
    await samples.add_account(tx)
    await messages.insert(tx, [samples.message("em_1")])
    assert await messages.resends(tx, "acc_1", "em_1", limit=9) == []
    for again in ("em_2", "em_3"):
        await messages.insert_resend(tx, "acc_1", resend_of="em_1", message_id=again)
    assert await messages.resends(tx, "acc_1", "em_1", limit=9) == ["em_3", "em_2"]
    assert await messages.resends(tx, "acc_1", "em_1", limit=1) == ["em_3"]
    assert await messages.resends(tx, "acc_2", "em_1", limit=9) == []
    assert await messages.resends_of_messages(tx, "acc_1", ["em_1", "em_2"]) == {"em_1"}
    assert await messages.resends_of_messages(tx, "acc_2", ["em_1"]) == set()


def key(
    text: str, *, credential: str = "cred_1", message: str = "em_1", expires_at: int = 100
) -> messages.NewIdempotencyKey:
    return messages.NewIdempotencyKey(credential, text, "acc_1", message.encode(), message, expires_at)


async def write_keys(store: Store, *keys: messages.NewIdempotencyKey) -> None:
    async with store.transaction() as tx:
        await messages.insert_idempotency_keys(tx, keys)


async def test_keys_are_found_within_their_credential_and_until_they_expire(store: Store) -> None:
    await write_keys(store, key("a"), key("a", credential="cred_2", message="em_2"), key("b", expires_at=50))
    wanted = [("cred_1", "a"), ("cred_2", "a"), ("cred_1", "b"), ("cred_1", "c")]
    async with store.reading() as tx:
        found = await messages.idempotency_keys(tx, wanted, now=50)
        assert await messages.idempotency_keys(tx, wanted, now=100) == {}
        assert await messages.idempotency_keys(tx, [], now=0) == {}
    assert found == {
        ("cred_1", "a"): messages.StoredIdempotencyKey(b"em_1", "em_1"),
        ("cred_2", "a"): messages.StoredIdempotencyKey(b"em_2", "em_2"),
    }


async def test_a_key_may_be_used_again_when_it_has_expired(store: Store) -> None:
    await write_keys(store, key("a", expires_at=10))
    await write_keys(store, key("a", message="em_2", expires_at=110))
    async with store.reading() as tx:
        found = await messages.idempotency_keys(tx, [("cred_1", "a")], now=50)
    assert found == {("cred_1", "a"): messages.StoredIdempotencyKey(b"em_2", "em_2")}
    assert await samples.count(store, "idempotency_keys") == 1


async def test_a_sweep_removes_what_has_expired_some_at_a_time(store: Store) -> None:
    await write_keys(store, *[key(f"{number:02}", expires_at=number) for number in range(20)])
    swept = []
    for _ in range(4):
        async with store.transaction() as tx:
            swept.append(await messages.sweep_idempotency_keys(tx, now=9, limit=6))
    assert swept == [6, 4, 0, 0]
    assert await samples.count(store, "idempotency_keys") == 10
