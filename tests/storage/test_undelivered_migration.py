"""Recipients of the version before are found by their outcome."""

import pytest

from postroad.storage import message_search, messages, migrations, recipients
from postroad.storage.store import Store
from tests.storage import samples
from tests.storage.conftest import Reopen


@pytest.fixture
def database_url(new_database_url: str) -> str:
    return new_database_url


@pytest.fixture
async def empty(reopen: Reopen) -> Store:
    return await reopen()


async def test_outcomes_from_before_and_after_the_migration_are_found(
    empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations.known
    before = [one.name for one in known(empty.dialect)].index("undelivered_recipients")
    monkeypatch.setattr(migrations, "known", lambda dialect: known(dialect)[:before])
    await migrations.apply(empty)
    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await messages.insert(tx, [samples.message(f"em_{number}") for number in range(3)])
        await recipients.insert(tx, [samples.recipient(f"em_{number}") for number in range(3)])
        await recipients.record(tx, [bounced("em_0")])
    monkeypatch.setattr(migrations, "known", known)

    assert (await migrations.apply(empty))[0].name == "undelivered_recipients"
    wanted = message_search.Condition(message_search.Kind.OUTCOME, "bounced")
    chosen = message_search.Filter(after="", before="em_~", clauses=((wanted,),))
    async with empty.transaction() as tx:
        await recipients.record(tx, [bounced("em_2")])
        plan = await message_search.plan(tx, "acc_1", chosen, limit=9)
        found = await message_search.page(tx, "acc_1", chosen, plan, limit=9)
    assert (plan.name, [one.id for one in found]) == ("outcome", ["em_2", "em_0"])


def bounced(message_id: str) -> recipients.RecipientUpdate:
    key = ("acc_1", message_id, f"rcp_{message_id}_0")
    return recipients.RecipientUpdate(*key, "bounced", "released", 1, 550, "No such user", None, samples.NOW)
