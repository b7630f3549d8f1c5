"""A database of the version before gets the index of test mail: what is stored already is counted."""

import pytest

from postroad.storage import messages
from postroad.storage.store import Store
from tests.storage import schema_upgrade

ROW = """
INSERT INTO messages (account_id, id, credential_id, source, sender, sender_key, subject, status, billing_status,
    recipient_count, credits_reserved, size, request_id, response, created_at, is_test)
VALUES ('{account_id}', '{id}', 'cred_1', 'api', 'a@example.com', 'a@example.com', 'Hi', 'queued', 'reserved',
    2, 0, 1000, 'req_1', CAST('' AS {blob}), 1, {is_test});
"""


@pytest.fixture
def database_url(new_database_url: str) -> str:
    return new_database_url


async def test_test_mail_of_the_version_before_counts(empty: Store, upgrade: schema_upgrade.SchemaUpgrade) -> None:
    await upgrade.begin("test_bytes")
    blob = {"sqlite": "BLOB", "postgres": "BYTEA"}[empty.dialect]
    rows = (("acc_1", "em_1", 1), ("acc_1", "em_2", 1), ("acc_1", "em_3", 0), ("acc_2", "em_4", 1))
    async with empty.transaction() as tx:
        for account_id, message_id, is_test in rows:
            await tx.run_script(ROW.format(account_id=account_id, id=message_id, is_test=is_test, blob=blob))
    await upgrade.finish()
    async with empty.reading() as tx:
        assert await messages.test_bytes_by_account(tx, recipient_bytes=10) == {"acc_1": 2040, "acc_2": 1020}
