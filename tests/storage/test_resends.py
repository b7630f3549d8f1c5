"""Which messages were sent again, from the version before on."""

import pytest

from postroad.storage import messages, migrations, resends
from postroad.storage.store import Store
from tests.storage import samples
from tests.storage.conftest import Reopen


@pytest.fixture
def database_url(new_database_url: str) -> str:
    return new_database_url


@pytest.fixture
async def empty(reopen: Reopen) -> Store:
    return await reopen()


async def test_messages_from_before_they_could_be_resent_have_no_resends(
    empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations.known
    before = [one.name for one in known(empty.dialect)].index("resends")
    monkeypatch.setattr(migrations, "known", lambda dialect: known(dialect)[:before])
    await migrations.apply(empty)
    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await messages.insert(tx, [samples.message("em_1")])
    monkeypatch.setattr(migrations, "known", known)

    assert (await migrations.apply(empty))[0].name == "resends"
    async with empty.transaction() as tx:
        assert await resends.of_message(tx, "acc_1", "em_1", limit=9) == []
        for again in ("em_2", "em_3"):
            await resends.insert(tx, "acc_1", resend_of="em_1", message_id=again)
        assert await resends.of_message(tx, "acc_1", "em_1", limit=9) == ["em_3", "em_2"]
        assert await resends.of_message(tx, "acc_1", "em_1", limit=1) == ["em_3"]
        assert await resends.of_message(tx, "acc_2", "em_1", limit=9) == []
