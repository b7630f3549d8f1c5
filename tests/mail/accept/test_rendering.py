"""Layouts and parts: rendered with what uses them, read when a message is sent, and kept while they are used."""

import pytest

from postroad import context, errors
from postroad.mail.accept import rendering
from postroad.services.accounts import account_registry as accounts
from postroad.services.templates import templates
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail


async def shop(ctx: context.Context, account: stored_accounts.Account) -> None:
    """A layout with a part, and a template in it."""
    await templates.put(ctx, account.id, "foot", subject="-", text="The {{shop}} team\n", html="<i>{{shop}}</i>")
    await templates.put(
        ctx,
        account.id,
        "base",
        subject="-",
        text="{{> content}}\n--\n{{> foot}}\n",
        html="<body>\n  {{> content}}\n{{> foot}}</body>",
    )
    await templates.put(
        ctx, account.id, "order", subject="Hi {{name}}", text="Dear {{name}}", html="<p>\n{{name}}</p>", layout="base"
    )


async def test_a_template_is_rendered_in_its_layout(ctx: context.Context, account: stored_accounts.Account) -> None:
    await shop(ctx, account)
    rendered = await templates.preview(ctx, account.id, "order", {"name": "<Ada>", "shop": "Tea"})
    assert rendered == rendering.Rendered(
        "Hi <Ada>",
        "Dear <Ada>--\nThe Tea team\n",
        "<body>\n  <p>\n  &lt;Ada&gt;</p><i>Tea</i></body>",
    )
    with pytest.raises(errors.InvalidRequest, match=r"^variables: 'name', 'shop' are missing$"):
        await templates.preview(ctx, account.id, "order", {})


async def test_a_changed_layout_changes_what_is_sent(ctx: context.Context, account: stored_accounts.Account) -> None:
    await shop(ctx, account)
    await templates.put(ctx, account.id, "base", subject="-", text="[{{> content}}]", html=None)
    rendered = await templates.preview(ctx, account.id, "order", {"name": "Ada"})
    assert (rendered.text, rendered.html) == ("[Dear Ada]", "<p>\nAda</p>")
    await accepted_mail.allow_sending(ctx, account.id)
    message = await accepted_mail.accept(
        ctx, account.id, subject=None, text=None, template="order", variables={"name": "Ada"}
    )
    assert message


async def test_what_is_used_cannot_be_removed(ctx: context.Context, account: stored_accounts.Account) -> None:
    await shop(ctx, account)
    await templates.put(ctx, account.id, "fo_t", subject="-", text="x", html=None)
    for alias, user in (("base", "order"), ("foot", "base")):
        with pytest.raises(
            errors.Conflict, match=f"the template '{user}' uses the template '{alias}'; change or remove it first"
        ):
            await templates.remove(ctx, account.id, alias)
    for alias in ("fo_t", "order", "base", "foot"):
        await templates.remove(ctx, account.id, alias)


async def test_a_layout_is_not_sent_and_shown_with_a_sample(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    await shop(ctx, account)
    with pytest.raises(errors.InvalidRequest, match=r"^template: 'base' is a layout; send a template that uses it$"):
        await templates.preview(ctx, account.id, "base", {"shop": "Tea"})
    content = templates.Content("-", "a {{> content}}", None)
    draft = await templates.prepare(ctx, account.id, content)
    assert rendering.render(draft, {}, content="sample").text == "a sample"


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"layout": "none"}, "template: 'order' uses the template 'none', which does not exist"),
        ({"layout": "foot"}, "layout: 'foot' is not a layout; add {{> content}} to it"),
        ({"text": "{{> none}}"}, "template: 'order' uses the template 'none', which does not exist"),
        ({"text": "{{> order}}"}, "template: 'order' uses itself, or more than 10 other templates"),
        ({"subject": "{{> foot}}"}, "subject: {{> foot}} is only for bodies"),
    ],
)
async def test_what_cannot_be_used_is_refused_when_it_is_saved(
    ctx: context.Context, account: stored_accounts.Account, changes: dict[str, str], problem: str
) -> None:
    await shop(ctx, account)
    given = {"subject": "Hi", "text": "x", "html": None, **changes}
    with pytest.raises(errors.InvalidRequest) as refusal:
        await templates.put(ctx, account.id, "order", **given)  # type: ignore[arg-type]
    assert refusal.value.message == problem


async def test_templates_cannot_use_each_other_in_a_circle(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    await shop(ctx, account)
    with pytest.raises(errors.InvalidRequest, match="'foot' uses itself"):
        await templates.put(ctx, account.id, "foot", subject="-", text="{{> base}}", html=None)


async def test_templates_of_another_account_cannot_be_used(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    await shop(ctx, account)
    other = await accounts.create(ctx, "Other")
    with pytest.raises(errors.InvalidRequest, match="uses the template 'base', which does not exist"):
        await templates.put(ctx, other.id, "mine", subject="-", text="x", html=None, layout="base")


async def test_parts_that_repeat_each_other_are_rendered_in_a_thread(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    """Nine templates of eight tags become millions of steps, without a list in the values."""
    await templates.put(ctx, account.id, "p0", subject="-", text="{{x}}" * 8, html=None)
    for number in range(1, 9):
        await templates.put(ctx, account.id, f"p{number}", subject="-", text=f"{{{{> p{number - 1}}}}}" * 8, html=None)
    async with ctx.store.reading() as tx:
        deep, flat = [
            await rendering.load_parts(tx, await templates.find(ctx, account.id, alias)) for alias in ("p8", "p1")
        ]
    assert rendering.is_costly(deep)
    assert not rendering.is_costly(flat)
