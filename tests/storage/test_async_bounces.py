"""Asynchronous bounces: kept by message."""

import pytest

from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.mail import attempts, messages
from tests.storage import samples


def bounce(recipient_id: str, received_at: int = samples.NOW, account_id: str = "acc_1") -> attempts.AsyncBounce:
    return attempts.AsyncBounce(account_id, "em_1", recipient_id, received_at, "failed", "5.1.1", "address", "550 no")


async def test_addressees_are_the_recipients_of_the_message(store: Store) -> None:
    async with store.transaction() as tx:
        await messages.insert_recipients(tx, [samples.recipient("em_1", number) for number in (1, 0)])
        await messages.insert_recipients(tx, [samples.recipient("em_2"), samples.recipient("em_1", account_id="acc_2")])
        found = await attempts.addressees(tx, "acc_1", "em_1")
    assert found == [
        attempts.ReportedRecipient(f"rcp_em_1_{number}", f"person{number}@example.org", "queued") for number in (0, 1)
    ]


async def test_reports_come_back_by_recipient_and_time(store: Store) -> None:
    rows = [bounce("rcp_1"), bounce("rcp_1", samples.NOW + 1), bounce("rcp_2")]
    async with store.transaction() as tx:
        await attempts.insert_async_bounces(tx, [rows[2], rows[1], rows[0], bounce("rcp_1", account_id="acc_2")])
        await attempts.insert_async_bounces(tx, [])
    async with store.reading() as tx:
        assert await attempts.async_bounces(tx, "acc_1", "em_1") == rows
        assert await attempts.async_bounces(tx, "acc_1", "em_2") == []


async def test_a_recipient_has_one_report_a_microsecond(store: Store) -> None:
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await attempts.insert_async_bounces(tx, [bounce("rcp_1"), bounce("rcp_1")])
