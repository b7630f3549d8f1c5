"""A database of the version before gets the bytes of hourly counts: what was counted before has those of recipients."""

import pytest

from postroad.storage import hourly_counts
from postroad.storage.store import Store
from tests.storage import schema_upgrade

ROW = """
INSERT INTO hourly_counts (account_id, hour, provider, messages, recipients, delivered, bounced, failed, deferred,
    delivery_time)
VALUES ('{account_id}', 5, '', 1, 2, 0, 0, 0, 0, 0)"""


@pytest.fixture
def database_url(new_database_url: str) -> str:
    return new_database_url


async def test_hours_of_the_version_before_have_the_bytes_of_their_recipients(
    empty: Store, upgrade: schema_upgrade.SchemaUpgrade
) -> None:
    await upgrade.begin("message_bytes")
    async with empty.transaction() as tx:
        await tx.run_script(ROW.format(account_id="acc_1"))
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(ROW.format(account_id="acc_2"))
        new = hourly_counts.CountIncrement(account_id="acc_1", hour=5, messages=1, recipients=1, message_bytes=700)
        await hourly_counts.add(tx, [new])
    async with empty.reading() as tx:
        found = await hourly_counts.bytes_by_account(tx, from_hour=5, recipient_bytes=10)
        assert found == {"acc_1": 730, "acc_2": 20}
