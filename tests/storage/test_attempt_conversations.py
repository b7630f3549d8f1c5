"""What was said in attempts: from the version before on, bounded, and deleted with its message."""

from postroad.storage import attempts, messages, retention
from postroad.storage.store import Store
from tests.storage import samples
from tests.storage.schema_upgrade import SchemaUpgrade
from tests.storage.test_retention import attempt

# As the version before wrote it.
OLD_ATTEMPT = """
    INSERT INTO attempts (account_id, message_id, recipient_id, started_at, duration, provider_queue, host, address,
        tls, stage, verdict, reason, enhanced_code, response, in_doubt)
    VALUES ('acc_1', 'em_1', 'rcp_em_1_0', 1, 5, 'google', '', '', '', 'connect', 'retry', '', '', '', 0)"""


async def test_conversations_are_stored_from_the_version_before_on_and_go_with_their_message(
    empty: Store, upgrade: SchemaUpgrade
) -> None:
    await upgrade.begin("conversations")
    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await messages.insert(tx, [samples.message("em_1")])
        await tx.run_script(OLD_ATTEMPT)
    await upgrade.finish()
    async with empty.transaction() as tx:
        assert await attempts.conversations(tx, "acc_1", "em_1", limit=9) == {}
        for text in ("S: 220 hello", "a repeated record changes nothing"):
            await attempts.insert_conversations(tx, [(attempt("em_1"), text)])
        said = {("rcp_em_1_0", 1): "S: 220 hello"}
        assert await attempts.conversations(tx, "acc_1", "em_1", limit=9) == said
        assert await attempts.conversations(tx, "acc_1", "em_1", limit=0) == {}
        assert await attempts.conversations(tx, "acc_2", "em_1", limit=9) == {}
        await messages.finish(tx, [("acc_1", "em_1", "failed", "released", 5)])
        await retention.remove_bodies(tx, ended_before=5)
        assert await retention.remove_messages(tx, ended_before=5) == 1
        assert await attempts.conversations(tx, "acc_1", "em_1", limit=9) == {}
