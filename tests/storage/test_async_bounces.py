"""Late bounces: kept by message, and a message's account is found without knowing it."""

import pytest

from postroad.storage import async_bounces, messages, recipients
from postroad.storage.store import ConstraintViolated, Store
from tests.storage import samples


def bounce(recipient_id: str, received_at: int = samples.NOW, account_id: str = "acc_1") -> async_bounces.LateBounce:
    return async_bounces.LateBounce(
        account_id, "em_1", recipient_id, received_at, "failed", "5.1.1", "address", "550 no"
    )


async def test_the_account_of_a_message_is_found(store: Store) -> None:
    async with store.transaction() as tx:
        for number in range(5):
            await samples.add_account(tx, f"acc_{number}")
        await messages.insert(tx, [samples.message("em_1", "acc_3"), samples.message("em_2", "acc_0")])
    async with store.scanning() as tx:
        assert await async_bounces.account_of(tx, "em_1") == "acc_3"
        assert await async_bounces.account_of(tx, "em_2") == "acc_0"
        assert await async_bounces.account_of(tx, "em_3") is None


async def test_addressees_are_the_recipients_of_the_message(store: Store) -> None:
    async with store.transaction() as tx:
        await recipients.insert(tx, [samples.recipient("em_1", number) for number in (1, 0)])
        await recipients.insert(tx, [samples.recipient("em_2"), samples.recipient("em_1", account_id="acc_2")])
        found = await async_bounces.addressees(tx, "acc_1", "em_1")
    assert found == [
        async_bounces.ReportedRecipient(f"rcp_em_1_{number}", f"person{number}@example.org", "queued")
        for number in (0, 1)
    ]


async def test_reports_come_back_by_recipient_and_time(store: Store) -> None:
    rows = [bounce("rcp_1"), bounce("rcp_1", samples.NOW + 1), bounce("rcp_2")]
    async with store.transaction() as tx:
        await async_bounces.insert(tx, [rows[2], rows[1], rows[0], bounce("rcp_1", account_id="acc_2")])
        await async_bounces.insert(tx, [])
    async with store.reading() as tx:
        assert await async_bounces.of_message(tx, "acc_1", "em_1") == rows
        assert await async_bounces.of_message(tx, "acc_1", "em_2") == []


async def test_a_recipient_has_one_report_a_microsecond(store: Store) -> None:
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await async_bounces.insert(tx, [bounce("rcp_1"), bounce("rcp_1")])
