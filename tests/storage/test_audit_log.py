"""Entries of the audit log: read newest first, within their account, and deleted when they are old."""

import msgspec

from postroad.storage.engine.store import Transaction
from postroad.storage.people import audit_log
from tests.storage import samples


def entry(number: int, *, account_id: str = "acc_1") -> audit_log.Entry:
    return audit_log.Entry(
        account_id=account_id,
        id=f"aud_{number}",
        actor_kind="person",
        user_id="usr_1",
        actor="jo@example.com",
        action="domain.added",
        subject="example.com",
        detail="",
        request_id="req_1",
        client_address="192.0.2.1",
        created_at=samples.NOW + number,
    )


async def test_entries_are_read_newest_first_and_within_their_account(tx: Transaction) -> None:
    for number in range(4):
        await audit_log.insert(tx, entry(number))
    await audit_log.insert(tx, entry(9, account_id="acc_2"))
    assert await audit_log.page(tx, "acc_1", before="aud_~", limit=2) == [entry(3), entry(2)]
    assert await audit_log.page(tx, "acc_1", before="aud_2", limit=9) == [entry(1), entry(0)]


async def test_old_entries_go_some_at_a_time(tx: Transaction) -> None:
    for number in range(5):
        await audit_log.insert(tx, entry(number))
    assert [await audit_log.sweep(tx, before=samples.NOW + 3, limit=2) for _ in range(3)] == [2, 1, 0]
    assert await audit_log.page(tx, "acc_1", before="aud_~", limit=9) == [entry(4), entry(3)]


async def test_entries_are_found_by_patterns(tx: Transaction) -> None:
    patterns = audit_log.Patterns(actor="%jo@%", action="domain.%", subject="%!%%")
    for number in range(4):
        await audit_log.insert(tx, msgspec.structs.replace(entry(number), subject=f"100% {number}"))
    await audit_log.insert(tx, entry(5))
    found = await audit_log.page(tx, "acc_1", before="aud_~", after="aud_1", limit=9, patterns=patterns)
    assert [one.id for one in found] == ["aud_3", "aud_2", "aud_1"]
    assert await audit_log.floor(tx, "acc_1", before="aud_~", after="aud_1", examined=3) == "aud_2"
    assert await audit_log.floor(tx, "acc_1", before="aud_~", after="aud_1", examined=9) is None
