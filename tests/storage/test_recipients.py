"""Recipients: one row an address, in the order of their ids, for their account alone."""

import pytest

from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.mail import messages
from tests.storage import samples


async def test_recipients_come_back_queued_and_in_order(store: Store) -> None:
    async with store.transaction() as tx:
        await messages.insert_recipients(tx, [samples.recipient("em_1", number) for number in (2, 0, 1)])
        await messages.insert_recipients(tx, [])
    async with store.reading() as tx:
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
