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

    async def page(account_id: str, after: str, limit: int) -> list[templates.Summary]:
        return await templates.summaries(tx, account_id, after=after, limit=limit, is_published=True)

    assert [one.alias for one in await page("acc_1", "", 3)] == ["a", "b-", "b_"]
    assert [one.alias for one in await page("acc_1", "b_", 3)] == ["c"]
    assert await page("acc_2", "", 3) == []
    first = await page("acc_1", "", 2)
    assert [(one.alias, one.has_text, one.has_html) for one in first] == [("a", True, True), ("b-", True, False)]


async def test_what_was_never_published_is_listed_if_asked_for(tx: Transaction) -> None:
    await templates.put(tx, template("tpl_1", "draft", text=None))
    await templates.put(tx, template("tpl_2", "sent"))
    for is_published, aliases in ((True, ["sent"]), (False, ["draft", "sent"])):
        found = await templates.summaries(tx, "acc_1", after="", limit=3, is_published=is_published)
        assert [one.alias for one in found] == aliases


async def test_layouts_are_what_has_a_place_for_content(tx: Transaction) -> None:
    bodies = {"a": "x {{> content}}", "b": "{{>content }} y", "c": "{{> footer}} content", "d": None}
    for alias, text in bodies.items():
        await templates.put(
            tx, template(f"tpl_{alias}", alias, text=text, html="{{>  content}}" if alias == "d" else None)
        )
    assert await templates.layouts(tx, "acc_1", limit=9) == ["a", "b", "d"]
    assert await templates.layouts(tx, "acc_1", limit=1) == ["a"]
    assert await templates.layouts(tx, "acc_2", limit=9) == []


async def test_a_removed_template_is_gone(tx: Transaction) -> None:
    await templates.put(tx, template("tpl_1", "welcome"))
    assert not await templates.remove(tx, "acc_2", "welcome")
    assert await templates.remove(tx, "acc_1", "welcome")
    assert not await templates.remove(tx, "acc_1", "welcome")
    assert await templates.by_alias(tx, "acc_1", "welcome") is None
