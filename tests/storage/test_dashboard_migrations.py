"""Migrations for pages of the dashboard, from a store of the version before."""

from postroad.storage import (
    failure_counts,
    message_search,
    messages,
    notices,
    recipients,
    saved_views,
    search_conditions,
    templates,
    users,
)
from postroad.storage.store import Store
from tests.storage import samples
from tests.storage.schema_upgrade import SchemaUpgrade


async def test_users_from_before_time_zones_have_none(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("time_zones")
    async with empty.transaction() as tx:
        await samples.add_old_user(tx, joined_at=1)
    await upgrade.finish()
    async with empty.transaction() as tx:
        before = await users.by_id(tx, "usr_1")
        assert before is not None
        assert (before.email, before.time_zone) == ("jo@example.com", None)
        await users.set_time_zone(tx, "usr_1", "Europe/Berlin")
        changed = await users.by_id(tx, "usr_1")
    assert changed is not None
    assert changed.time_zone == "Europe/Berlin"


async def test_failures_are_counted_by_cause_from_the_version_before_on(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("failure_counts")
    await upgrade.finish()
    more = failure_counts.FailureIncrement("acc_1", 7, "google", "mailbox_full", 2, 1)
    async with empty.transaction() as tx:
        await failure_counts.add(tx, [more])
        await failure_counts.add(tx, [more])
        assert await failure_counts.between(tx, "acc_1", from_hour=7, until_hour=8) == [
            failure_counts.FailureTotal(7, "google", "mailbox_full", 4, 2)
        ]
        assert await failure_counts.between(tx, "acc_1", from_hour=8, until_hour=9) == []


async def test_searches_are_saved_from_the_version_before_on(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("saved_views")
    async with empty.transaction() as tx:
        await samples.add_account(tx)
    await upgrade.finish()
    view = saved_views.SavedView("view_1", "acc_1", "Invoices", "invoice", 1)
    async with empty.transaction() as tx:
        await saved_views.put(tx, view)
        assert await saved_views.of_account(tx, "acc_1") == [view]


async def test_notices_are_kept_from_the_version_before_on(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("notices")
    await upgrade.finish()
    notice = notices.Notice("ntc_1", "credits.low", "acc_1", "", "acc_1", "{}", 5)
    mail = notices.Mail("usr_1", is_digest=False, due_at=6, notice=notice)
    async with empty.transaction() as tx:
        assert await notices.insert(tx, notice, unless_since=0)
        assert not await notices.insert(tx, notice, unless_since=4)
        assert await notices.unresolved(tx, limit=9) == [notice]
        for _ in range(2):
            await notices.resolve(tx, "ntc_1", [mail], now=6)
        assert await notices.unresolved(tx, limit=9) == []
        assert await notices.due(tx, now=5, limit=9) == []
        assert await notices.due(tx, now=6, limit=9) == [mail]
        await notices.mark_sent(tx, mail, now=7)
        assert await notices.due(tx, now=9, limit=9) == []
        assert await notices.sent_since(tx, "usr_1", "credits.low", 6) == 1
        assert (await notices.sweep(tx, before=6), await notices.sweep_mails(tx, before=7)) == (1, 1)


async def test_templates_from_before_they_had_versions_are_published(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("template_versions")

    def old_template(alias: str) -> str:
        """The statement of the version before."""
        return f"""
            INSERT INTO templates (id, account_id, alias, subject, text, html, created_at, updated_at)
            VALUES ('tpl_{alias}', 'acc_1', '{alias}', 'Hello', 'Hi', NULL, 1, 1)
        """  # noqa: S608 - of constants

    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await tx.run_script(old_template("one"))
    await upgrade.finish()
    async with empty.transaction() as tx:
        # A neighbour of the version before still writes.
        await tx.run_script(old_template("two"))
        found = await templates.page(tx, "acc_1", after="", limit=9)
        assert await templates.latest_version(tx, "tpl_one") is None
    assert [(one.alias, one.text, one.version, one.layout, one.uses) for one in found] == [
        ("one", "Hi", None, None, None),
        ("two", "Hi", None, None, None),
    ]


async def test_outcomes_from_before_and_after_the_migration_are_found(empty: Store, upgrade: SchemaUpgrade) -> None:
    await upgrade.begin("undelivered_recipients")
    async with empty.transaction() as tx:
        await samples.add_account(tx)
        await messages.insert(tx, [samples.message(f"em_{number}") for number in range(3)])
        await recipients.insert(tx, [samples.recipient(f"em_{number}") for number in range(3)])
        await recipients.record(tx, [bounced("em_0")])
    await upgrade.finish()
    wanted = search_conditions.Condition(search_conditions.Kind.OUTCOME, "bounced")
    chosen = search_conditions.Filter(after="", before="em_~", clauses=((wanted,),))
    async with empty.transaction() as tx:
        await recipients.record(tx, [bounced("em_2")])
        plan = await message_search.plan(tx, "acc_1", chosen, limit=9)
        found = await message_search.page(tx, "acc_1", chosen, plan, limit=9)
    assert (plan.name, [one.id for one in found]) == ("outcome", ["em_2", "em_0"])


def bounced(message_id: str) -> recipients.RecipientUpdate:
    key = ("acc_1", message_id, f"rcp_{message_id}_0")
    return recipients.RecipientUpdate(*key, "bounced", "released", 1, 550, "No such user", None, samples.NOW)
