"""Which messages were sent again, and as which."""

from postroad.storage.engine.store import Store
from postroad.storage.mail import messages
from tests.storage import samples


async def test_resends_are_listed_newest_first_for_their_account(store: Store) -> None:
    async with store.transaction() as tx:
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
