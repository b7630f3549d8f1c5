"""Templates: put under an alias, replaced in place, listed by alias."""

from postroad.storage.engine.store import Store
from postroad.storage.mail import templates


def template(
    template_id: str, alias: str, *, text: str | None = "text", html: str | None = None, now: int = 1
) -> templates.Template:
    return templates.Template(template_id, "acc_1", alias, "Subject", text, html, now, now)


async def test_a_template_is_made_and_then_replaced_in_place(store: Store) -> None:
    async with store.transaction() as tx:
        made = await templates.put(tx, template("tpl_1", "welcome"))
        replaced = await templates.put(tx, template("tpl_2", "welcome", text=None, html="<p>", now=9))
    assert made == template("tpl_1", "welcome")
    assert replaced == templates.Template("tpl_1", "acc_1", "welcome", "Subject", None, "<p>", 1, 9)
    async with store.reading() as tx:
        assert await templates.by_alias(tx, "acc_1", "welcome") == replaced
        assert await templates.by_alias(tx, "acc_2", "welcome") is None


async def test_pages_follow_the_alias(store: Store) -> None:
    async with store.transaction() as tx:
        for alias in ("c", "a", "b_", "b-"):
            await templates.put(tx, template(f"tpl_{alias}", alias, html="<p>" if alias == "a" else None))
    async with store.scanning() as tx:
        assert [one.alias for one in await templates.page(tx, "acc_1", after="", limit=3)] == ["a", "b-", "b_"]
        assert [one.alias for one in await templates.page(tx, "acc_1", after="b_", limit=3)] == ["c"]
        assert await templates.page(tx, "acc_2", after="", limit=3) == []
        summaries = await templates.summaries(tx, "acc_1", after="", limit=2)
    assert [(one.alias, one.has_text, one.has_html) for one in summaries] == [("a", True, True), ("b-", True, False)]


async def test_a_removed_template_is_gone(store: Store) -> None:
    async with store.transaction() as tx:
        await templates.put(tx, template("tpl_1", "welcome"))
        assert not await templates.remove(tx, "acc_2", "welcome")
        assert await templates.remove(tx, "acc_1", "welcome")
        assert not await templates.remove(tx, "acc_1", "welcome")
        assert await templates.by_alias(tx, "acc_1", "welcome") is None
