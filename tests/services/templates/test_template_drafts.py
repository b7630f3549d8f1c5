"""Versions of templates: saving adds one, publishing sends it, and an old one can be compared and restored."""

import dataclasses
from typing import Any

import pytest

from postroad import context, errors
from postroad.mail.accept import submit
from postroad.model.mail import limits
from postroad.model.people import callers
from postroad.services import usage_limits
from postroad.services.accounts import account_registry as accounts
from postroad.services.templates import template_drafts, templates
from postroad.storage.mail import templates as stored
from postroad.storage.people import accounts as stored_accounts
from tests import contexts

Content = templates.Content


async def saved(ctx: context.Context, account: stored_accounts.Account) -> stored.Template:
    return await templates.put(ctx, account.id, "welcome", subject="One", text="a\nb\nc", html=None)


async def test_a_draft_is_not_sent_before_it_is_published(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await saved(ctx, account)
    clock.pass_seconds(60)
    content = Content("Two", "a\nx\nc", "<p>", sample='{"a": 1}')
    draft = await template_drafts.save(ctx, account.id, "welcome", content)
    template = await templates.find(ctx, account.id, "welcome")
    assert (template.subject, template.version) == ("One", 1)
    assert (draft.number, draft.published_at, draft.saved_at, draft.saved_by) == (2, None, clock.now, "operator")
    assert template_drafts.is_draft(await template_drafts.latest(ctx, template))
    published = await templates.save(ctx, account.id, "welcome", content)
    assert (published.subject, published.html, published.version) == ("Two", "<p>", 2)
    assert not template_drafts.is_draft(await template_drafts.latest(ctx, published))
    history = await template_drafts.history(ctx, account.id, "welcome")
    assert [(one.number, one.published_at, one.subject) for one in history] == [
        (2, clock.now, "Two"),
        (1, clock.now - 60 * contexts.SECOND, "One"),
    ]
    assert (await template_drafts.find(ctx, account.id, "welcome", 2)).sample == '{"a": 1}'


async def test_saving_the_same_again_adds_no_version(ctx: context.Context, account: stored_accounts.Account) -> None:
    await saved(ctx, account)
    again = await saved(ctx, account)
    draft = await template_drafts.save(ctx, account.id, "welcome", Content("One", "a\nb\nc", None, sample="{}"))
    assert (again.version, draft.number, draft.sample) == (1, 1, "{}")
    # A draft is checked as what is sent.
    with pytest.raises(errors.InvalidRequest, match=r"^html: '\{\{#a\}\}' in line 1 is not closed"):
        await template_drafts.save(ctx, account.id, "welcome", Content("One", None, "{{#a}}"))
    assert len(await template_drafts.history(ctx, account.id, "welcome")) == 1


async def test_an_old_version_is_compared_and_restored_as_a_draft(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    await saved(ctx, account)
    await templates.put(ctx, account.id, "welcome", subject="One", text="a\nx\nc", html="<p>\u2028</p>")
    first, second = [await template_drafts.find(ctx, account.id, "welcome", number) for number in (1, 2)]
    assert template_drafts.differences(first, second) == [
        template_drafts.Difference("HTML", ("@@ -0,0 +1,2 @@", "+<p>", "+</p>")),
        template_drafts.Difference("Text", ("@@ -1,3 +1,3 @@", " a", "-b", "+x", " c")),
    ]
    assert template_drafts.differences(first, first) == []
    long, longer = dataclasses.replace(first, text="a\n" * 1000), dataclasses.replace(second, text="b\n" * 1001)
    assert template_drafts.differences(longer, dataclasses.replace(long, html=longer.html)) == [
        template_drafts.Difference("Text", ("@@ 1001 and 1000 lines are too many to compare @@",))
    ]
    restored = await template_drafts.restore(ctx, account.id, "welcome", 1)
    assert (restored.number, restored.text, restored.published_at) == (3, "a\nb\nc", None)
    assert (await templates.find(ctx, account.id, "welcome")).text == "a\nx\nc"


async def test_20_versions_and_the_published_one_are_kept(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    await saved(ctx, account)
    for number in range(30):
        await template_drafts.save(ctx, account.id, "welcome", Content(f"Draft {number}", "x", None))
    kept = [one.number for one in await template_drafts.history(ctx, account.id, "welcome")]
    assert kept == [*range(31, 11, -1), 1]
    assert (await templates.save(ctx, account.id, "welcome", Content("Draft 29", "x", None))).version == 31
    await template_drafts.save(ctx, account.id, "welcome", Content("Next", "x", None))
    assert 1 not in [one.number for one in await template_drafts.history(ctx, account.id, "welcome")]


async def test_a_copy_has_an_alias_of_its_own(ctx: context.Context, account: stored_accounts.Account) -> None:
    await saved(ctx, account)
    copy = await template_drafts.duplicate(ctx, account.id, "welcome")
    assert (copy.alias, copy.subject, copy.version) == ("welcome-copy", "One", 1)
    assert (await template_drafts.duplicate(ctx, account.id, "welcome")).alias == "welcome-copy-2"
    await templates.remove(ctx, account.id, "welcome-copy-2")
    await templates.put(ctx, account.id, "welcome-copy-3", subject="One", text="a", html=None)
    assert (await template_drafts.duplicate(ctx, account.id, "welcome")).alias == "welcome-copy-2"
    assert (await template_drafts.duplicate(ctx, account.id, "welcome")).alias == "welcome-copy-4"
    await templates.remove(ctx, account.id, "welcome")
    assert (await template_drafts.find(ctx, account.id, "welcome-copy", 1)).text == "a\nb\nc"


async def test_a_copy_is_saved_once_and_the_quota_is_named(
    ctx: context.Context, account_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "a" * limits.TEMPLATE_ALIAS_CHARACTERS
    await templates.put(ctx, account_id, long, subject="One", text="a", html=None)
    saves: list[str] = []
    save = templates.save

    async def noted(*arguments: Any, **more: Any) -> stored.Template:
        saves.append(arguments[2])
        return await save(*arguments, **more)

    monkeypatch.setattr(templates, "save", noted)
    for _ in range(3):
        await template_drafts.duplicate(ctx, account_id, long)
    assert [alias.lstrip("a") for alias in saves] == ["-copy", "-copy-2", "-copy-3"]
    monkeypatch.setattr(usage_limits, "QUOTAS", {"templates": 4})
    full = dataclasses.replace(ctx, actor=callers.Actor(callers.ActorKind.PERSON))
    with pytest.raises(errors.Conflict, match="the quota of this account is 4 templates"):
        await template_drafts.duplicate(full, account_id, long)
    assert len(saves) == 4


async def test_a_new_template_is_a_draft_until_it_is_published(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    await template_drafts.save(ctx, account.id, "welcome", Content("One", "x", None), is_new=True)
    with pytest.raises(errors.Conflict, match="the template 'welcome' already exists"):
        await template_drafts.save(ctx, account.id, "welcome", Content("Two", "x", None), is_new=True)
    await template_drafts.save(ctx, account.id, "welcome", Content("Two", "x", None))
    for attempt in (
        templates.find(ctx, account.id, "welcome"),
        templates.preview(ctx, account.id, "welcome", {}),
        template_drafts.duplicate(ctx, account.id, "welcome"),
    ):
        with pytest.raises(errors.NotFound):
            await attempt
    with pytest.raises(errors.InvalidRequest, match=r"^template: 'welcome' is a draft; publish it first$"):
        await submit.find_template(ctx, account.id, "welcome")
    with pytest.raises(errors.InvalidRequest, match="uses the template 'welcome', which is not published"):
        await templates.put(ctx, account.id, "other", subject="x", text="{{> welcome}}", html=None)
    assert await templates.summaries(ctx, account.id, "", 9) == []
    (row,) = await templates.summaries(ctx, account.id, "", 9, is_published=False)
    assert (row.alias, row.subject, row.has_text) == ("welcome", "Two", False)
    published = await templates.put(ctx, account.id, "welcome", subject="Three", text="y", html=None)
    assert (published.version, (await submit.find_template(ctx, account.id, "welcome")).text) == (3, "y")
    assert [one.alias for one in await templates.summaries(ctx, account.id, "", 9)] == ["welcome"]


async def test_of_a_draft_that_was_never_published_only_the_latest_versions_are_kept(
    ctx: context.Context, account_id: str
) -> None:
    for number in range(22):
        await template_drafts.save(ctx, account_id, "new", Content(f"Draft {number}", "x", None))
    assert [one.number for one in await template_drafts.history(ctx, account_id, "new")] == [*range(22, 2, -1)]


async def test_a_removed_draft_is_gone(ctx: context.Context, account_id: str) -> None:
    await template_drafts.save(ctx, account_id, "new", Content("Draft", "x", None))
    await templates.remove(ctx, account_id, "new")
    with pytest.raises(errors.NotFound):
        await template_drafts.history(ctx, account_id, "new")


async def test_versions_of_another_account_do_not_exist(ctx: context.Context, account: stored_accounts.Account) -> None:
    await saved(ctx, account)
    other = await accounts.create(ctx, "Other")
    for attempt in (
        template_drafts.history(ctx, other.id, "welcome"),
        template_drafts.find(ctx, other.id, "welcome", 1),
        template_drafts.restore(ctx, other.id, "welcome", 1),
        template_drafts.duplicate(ctx, other.id, "welcome"),
    ):
        with pytest.raises(errors.NotFound):
            await attempt
    with pytest.raises(errors.NotFound, match="no such version of this template"):
        await template_drafts.find(ctx, account.id, "welcome", 7)


async def test_a_template_from_before_there_were_versions_keeps_its_content_as_the_first(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    template = await saved(ctx, account)
    async with ctx.store.transaction() as tx:
        await stored.remove_versions(tx, template.id)
        await stored.put(tx, dataclasses.replace(template, version=None))
    draft = await template_drafts.save(ctx, account.id, "welcome", Content("Two", "x", None))
    history = await template_drafts.history(ctx, account.id, "welcome")
    assert (draft.number, [one.subject for one in history]) == (2, ["Two", "One"])


async def test_of_large_templates_fewer_versions_are_kept(ctx: context.Context, account_id: str) -> None:
    """Twenty of each of a thousand templates would take 10 GB."""
    for number in range(8):
        text = f"{number} " + "x" * 250_000
        await templates.put(ctx, account_id, "large", subject="x", text=text, html=text)
    assert [one.number for one in await template_drafts.history(ctx, account_id, "large")] == [8, 7, 6, 5]
    await templates.put(ctx, account_id, "large", subject="x", text="x", html=None)
    assert [one.number for one in await template_drafts.history(ctx, account_id, "large")] == [9, 8, 7, 6, 5]
