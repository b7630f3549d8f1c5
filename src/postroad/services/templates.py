"""Templates: a subject and bodies with `{{name}}` placeholders, identified by an alias within an account.

A template is validated when it is saved, so that its author finds a mistake and not a sender. Rendering inserts values
once: HTML-escaped in `html`, unchanged in `text` and in the subject, where a line break is refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from postroad import errors
from postroad.model import identifiers, mail
from postroad.protocol import placeholders
from postroad.services import account_quotas, audit_log, context
from postroad.services.acceptance import validation
from postroad.services.auth import grants
from postroad.storage import accounts, templates

# Text and HTML of this length fit into one management request together, and no newsletter comes near it.
BODY_CHARACTERS: Final = 256 * 1024
# Parsing and filling in this many placeholders takes about two milliseconds.
INLINE_PLACEHOLDERS: Final = 1_000
# Neither can be stored as text or sent as mail: NUL, and unpaired surrogates.
_UNSENDABLE: Final = re.compile("[\\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered template."""

    subject: str
    text: str | None
    html: str | None


def render(
    template: templates.Template, variables: Mapping[str, mail.TemplateValue], *, subject: str | None = None
) -> Rendered:
    """Render a template. A given subject replaces the template's own and is used unchanged."""
    parsed_subject = placeholders.parse(template.subject) if subject is None else placeholders.Template((subject,), ())
    text = None if template.text is None else placeholders.parse(template.text)
    html = None if template.html is None else placeholders.parse(template.html)
    _refuse_missing([part for part in (parsed_subject, text, html) if part is not None], variables)
    rendered = Rendered(
        subject=_render("subject", parsed_subject, variables),
        text=None if text is None else _render("text", text, variables),
        html=None if html is None else _render("html", html, variables),
    )
    validation.check_subject(rendered.subject)
    return rendered


def is_costly(template: templates.Template) -> bool:
    """Whether rendering it takes so long that other requests should not wait for it, however little it becomes."""
    return sum((source or "").count("{{") for source in (template.text, template.html)) > INLINE_PLACEHOLDERS


def render_draft(
    *, subject: str, text: str | None, html: str | None, variables: Mapping[str, mail.TemplateValue]
) -> Rendered:
    """Render a template that is not saved yet; fails as saving it, or sending with it, would."""
    check(subject=subject, text=text, html=html)
    draft = templates.Template(
        id="",
        account_id="",
        alias="",
        subject=subject,
        text=text or None,
        html=html or None,
        created_at=0,
        updated_at=0,
    )
    return render(draft, variables)


def names(template: templates.Template) -> list[str]:
    """The names of a template's placeholders, each once, in order of first use."""
    sources = (template.subject, template.text or "", template.html or "")
    return list(dict.fromkeys(name for source in sources for name in placeholders.parse(source).names))


async def put(
    ctx: context.Context, account_id: str, alias: str, *, subject: str, text: str | None, html: str | None
) -> templates.Template:
    """Create a template, or replace the one with this alias. An empty body counts as absent."""
    validation.check_alias("alias", alias)
    grants.check_template(ctx.actor)
    check(subject=subject, text=text, html=html)
    now = ctx.clock()
    template = templates.Template(
        id=ctx.new_id(identifiers.TEMPLATE, now=now),
        account_id=account_id,
        alias=alias,
        subject=subject,
        text=text or None,
        html=html or None,
        created_at=now,
        updated_at=now,
    )
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        if await templates.by_alias(tx, account_id, alias) is None:
            await account_quotas.check(ctx, tx, account_id, "templates")
        saved = await templates.put(tx, template)
        await audit_log.write(ctx, tx, account_id, "template.saved", alias)
    return saved


async def find(ctx: context.Context, account_id: str, alias: str) -> templates.Template:
    """One template of an account."""
    _refuse_impossible(alias)
    async with ctx.store.reading() as tx:
        template = await templates.by_alias(tx, account_id, alias)
    if template is None:
        raise _not_found()
    return template


async def page(ctx: context.Context, account_id: str, after: str, limit: int) -> list[templates.Template]:
    """A page of templates by alias; the first page is after an empty text."""
    async with ctx.store.scanning(account_id) as tx:
        return await templates.page(tx, account_id, after=after, limit=limit)


async def summaries(ctx: context.Context, account_id: str, after: str, limit: int) -> list[templates.Summary]:
    """The same without bodies, which can be large."""
    async with ctx.store.scanning(account_id) as tx:
        return await templates.summaries(tx, account_id, after=after, limit=limit)


async def remove(ctx: context.Context, account_id: str, alias: str) -> None:
    """Remove a template."""
    _refuse_impossible(alias)
    grants.check_template(ctx.actor)
    async with ctx.store.transaction() as tx:
        if not await templates.remove(tx, account_id, alias):
            raise _not_found()
        await audit_log.write(ctx, tx, account_id, "template.removed", alias)


async def preview(
    ctx: context.Context, account_id: str, alias: str, variables: Mapping[str, mail.TemplateValue]
) -> Rendered:
    """Render one template of an account."""
    template = await find(ctx, account_id, alias)
    if is_costly(template):
        return await ctx.threads.run(account_id, lambda: render(template, variables))
    return render(template, variables)


def _refuse_missing(parts: list[placeholders.Template], variables: Mapping[str, mail.TemplateValue]) -> None:
    wanted = dict.fromkeys(name for part in parts for name in part.names)
    missing = [f"'{name}'" for name in wanted if variables.get(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise errors.InvalidRequest(f"variables: {', '.join(missing)} {verb} missing")


def _render(field: str, part: placeholders.Template, variables: Mapping[str, mail.TemplateValue]) -> str:
    try:
        text = part.render(variables, escape_html=field == "html")
    except placeholders.RenderedTooLarge as problem:
        raise errors.PayloadTooLarge(f"{field}: {problem}") from None
    except placeholders.TemplateError as problem:
        raise errors.InvalidRequest(f"variables: {problem}") from None
    if unsendable := _UNSENDABLE.search(text):
        raise errors.InvalidRequest(f"variables: the character U+{ord(unsendable[0]):04X} is not allowed in mail")
    return text


def check(*, subject: str, text: str | None, html: str | None) -> None:
    """Validate what is to be saved."""
    validation.check_subject(subject)
    if not text and not html:
        raise errors.InvalidRequest("text: give at least one of text and html")
    for field, source in (("subject", subject), ("text", text), ("html", html)):
        _check_source(field, source or "")


def _check_source(field: str, source: str) -> None:
    if len(source) > BODY_CHARACTERS:
        raise errors.InvalidRequest(f"{field}: at most {BODY_CHARACTERS} characters")
    if unsendable := _UNSENDABLE.search(source):
        raise errors.InvalidRequest(f"{field}: the character U+{ord(unsendable[0]):04X} is not allowed in mail")
    try:
        placeholders.parse(source)
    except placeholders.TemplateError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


def _refuse_impossible(alias: str) -> None:
    if not validation.is_alias(alias):
        raise _not_found()


def _not_found() -> errors.NotFound:
    return errors.NotFound("no such template in this account")
