"""What was said in attempts: stored once, and deleted with its message."""

from postroad.storage.engine.store import Store
from postroad.storage.mail import attempts, messages
from postroad.storage.operations import retention
from tests.storage import samples
from tests.storage.test_retention import attempt


async def test_a_conversation_is_stored_once_and_goes_with_its_message(store: Store) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx)
        await messages.insert(tx, [samples.message("em_1")])
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
