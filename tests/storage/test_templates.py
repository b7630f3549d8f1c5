"""Templates: put under an alias, replaced in place, listed by alias."""

from postroad.storage.engine.store import Transaction
from postroad.storage.mail import templates


def template(
    template_id: str, alias: str, *, text: str | None = "text", html: str | None = None, now: int = 1
) -> templates.Template:
    return templates.Template(template_id, "acc_1", alias, "Subject", text, html, now, now)


async def test_a_template_is_made_and_then_replaced_in_place(tx: Transaction) -> None:
    made = await templates.put(tx, template("tpl_1", "welcome"))
    replaced = await templates.put(tx, template("tpl_2", "welcome", text=None, html="<p>", now=9))
    assert made == template("tpl_1", "welcome")
    assert replaced == templates.Template("tpl_1", "acc_1", "welcome", "Subject", None, "<p>", 1, 9)
    assert await templates.by_alias(tx, "acc_1", "welcome") == replaced
    assert await templates.by_alias(tx, "acc_2", "welcome") is None


async def test_pages_follow_the_alias(tx: Transaction) -> None:
    for alias in ("c", "a", "b_", "b-"):
        await templates.put(tx, template(f"tpl_{alias}", alias, html="<p>" if alias == "a" else None))
    assert [one.alias for one in await templates.summaries(tx, "acc_1", after="", limit=3)] == ["a", "b-", "b_"]
    assert [one.alias for one in await templates.summaries(tx, "acc_1", after="b_", limit=3)] == ["c"]
    assert await templates.summaries(tx, "acc_2", after="", limit=3) == []
    first = await templates.summaries(tx, "acc_1", after="", limit=2)
    assert [(one.alias, one.has_text, one.has_html) for one in first] == [("a", True, True), ("b-", True, False)]


async def test_a_removed_template_is_gone(tx: Transaction) -> None:
    await templates.put(tx, template("tpl_1", "welcome"))
    assert not await templates.remove(tx, "acc_2", "welcome")
    assert await templates.remove(tx, "acc_1", "welcome")
    assert not await templates.remove(tx, "acc_1", "welcome")
    assert await templates.by_alias(tx, "acc_1", "welcome") is None
