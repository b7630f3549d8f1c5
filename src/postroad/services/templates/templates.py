"""Templates of an account: a subject and bodies in the language of `protocol/text/mustache.py`, under an alias.

A template is validated when it is saved, so that its author finds a mistake and not a sender. Rendering inserts values

"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import msgspec

from postroad import context, errors
from postroad.mail.accept import rendering, validation
from postroad.model.mail import limits, statuses
from postroad.model.people import grants
from postroad.model.units import identifiers, times
from postroad.protocol.text import mustache, placeholders, sample_values
from postroad.services import audit_log, usage_limits
from postroad.storage.engine import store
from postroad.storage.mail import templates
from postroad.storage.people import accounts

# Versions of templates: every save adds one, `MAX_VERSIONS` are kept, and one of them is published.
#
# The row of a template has the content that is sent. A version that was saved after the published one is the draft.

MAX_VERSIONS: Final = 20
# A version can have half a megabyte, and an account a thousand templates: of large ones, fewer are kept.
KEPT_CHARACTERS: Final = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Content:
    """What a version consists of. An empty body counts as absent; `sample` has test values as JSON."""

    subject: str
    text: str | None
    html: str | None
    layout: str | None = None
    sample: str | None = None


def content_of(found: templates.Template | templates.Version) -> Content:
    """The content of a template or a version, without its sample values."""
    return Content(found.subject, found.text, found.html, found.layout)


async def record_version(
    ctx: context.Context,
    tx: store.Transaction,
    template: templates.Template,
    content: Content,
    *,
    is_published: bool,
) -> int:
    """Add a version; returns its number. What was saved last is not saved again: only its sample values may change."""
    now = ctx.clock()
    latest = await templates.latest_version(tx, template.id) or await _first_version(ctx, tx, template, content)
    if latest is not None and content_of(latest) == replace(content, sample=None):
        if content.sample is not None:
            await templates.keep_sample(tx, latest, content.sample)
        if is_published:
            await templates.publish_version(tx, template.id, latest.number, now=now)
        return latest.number
    number = 1 if latest is None else latest.number + 1
    is_published = is_published or content_of(template) == replace(content, sample=None)
    await _add_version(ctx, tx, template, content, number=number, is_published=is_published)
    published = number if is_published else 1 if template.version is None else template.version
    await templates.forget_versions(tx, template.id, until=number - _kept_version(content), published=published)
    return number


def _kept_version(content: Content) -> int:
    size = sum(len(text or "") for text in (content.subject, content.text, content.html, content.sample))
    return min(MAX_VERSIONS, KEPT_CHARACTERS // max(1, size))


async def _first_version(
    ctx: context.Context, tx: store.Transaction, template: templates.Template, content: Content
) -> templates.Version | None:
    """The content of a template from before there were versions becomes the first one."""
    if template.version is not None or content_of(template) == replace(content, sample=None):
        return None
    await _add_version(ctx, tx, template, content_of(template), number=1, is_published=True)
    return await templates.latest_version(tx, template.id)


async def _add_version(
    ctx: context.Context,
    tx: store.Transaction,
    template: templates.Template,
    content: Content,
    *,
    number: int,
    is_published: bool,
) -> None:
    now = ctx.clock()
    await templates.add_version(
        tx,
        templates.Version(
            template_id=template.id,
            number=number,
            account_id=template.account_id,
            saved_at=now,
            saved_by=await audit_log.actor_name(tx, ctx.actor),
            published_at=now if is_published else None,
            layout=content.layout,
            subject=content.subject,
            text=content.text or None,
            html=content.html or None,
            sample=content.sample,
        ),
    )


T = TypeVar("T")
# Text and HTML of this length fit into one management request together, and no newsletter comes near it.
BODY_CHARACTERS: Final = 256 * 1024
# Of sample values in code: a list of an order has hundreds, and every language repeats them.
EXAMPLE_OCTETS: Final = 16 * 1024


def render_draft(
    *, subject: str, text: str | None, html: str | None, variables: Mapping[str, statuses.TemplateValue]
) -> rendering.Rendered:
    """Render a template that is not saved yet, without a layout; fails as saving it, or sending with it, would."""
    check(subject=subject, text=text, html=html)
    return rendering.render(templates.Template("", "", "", subject, text or None, html or None, 0, 0), variables)


async def names(ctx: context.Context, template: templates.Template) -> list[str]:
    """The names of a template's placeholders, each once, in order of first use."""
    sources = (template.subject, template.text or "", template.html or "")

    def find() -> list[str]:
        return list(dict.fromkeys(name for source in sources for name in mustache.parse(source).names))

    return await _run(ctx, template, find)


def sample(template: templates.Template, *, now: int) -> dict[str, Any]:
    """Sample values for a template and what it uses: with them every section is shown."""
    bodies = [body or "" for part in (template, *template.used) for body in (part.text, part.html)]
    today = times.local(now, times.UTC)
    return sample_values.sample(
        map(mustache.parse, (template.subject, *bodies)), today=f"{today.day} {today:%B %Y}", year=f"{today:%Y}"
    )


def example(template: templates.Template, *, now: int) -> dict[str, Any]:
    """Sample values for code to copy: as many as a message may have, and none if nobody would read them all."""
    values = dict(itertools.islice(sample(template, now=now).items(), limits.VARIABLES))
    return values if len(msgspec.json.encode(values)) <= EXAMPLE_OCTETS else {}


async def put(
    ctx: context.Context,
    account_id: str,
    alias: str,
    *,
    subject: str,
    text: str | None,
    html: str | None,
    layout: str | None = None,
) -> templates.Template:
    """Create a template, or replace the one with this alias. An empty body counts as absent."""
    return await save(ctx, account_id, alias, Content(subject, text or None, html or None, layout))


async def save(
    ctx: context.Context, account_id: str, alias: str, content: Content, *, is_new: bool = False
) -> templates.Template:
    """Create or replace a template: the content becomes a version, which is published."""
    validation.check_alias("alias", alias)
    grants.check_template(ctx.actor)
    uses = (await prepare(ctx, account_id, content, alias=alias)).uses
    async with ctx.store.transaction() as tx:
        before = await lock(ctx, tx, account_id, alias, is_new=is_new)
        template = with_content(before, content, uses=uses)
        await rendering.load_parts(tx, template)
        number = await record_version(ctx, tx, before, content, is_published=True)
        saved = await templates.put(tx, dataclasses.replace(template, version=number, updated_at=ctx.clock()))
        await audit_log.write(ctx, tx, account_id, "template.saved", alias)
    return saved


async def lock(
    ctx: context.Context, tx: store.Transaction, account_id: str, alias: str, *, is_new: bool
) -> templates.Template:
    """The template to save, which others wait for; one that is not there yet is without content."""
    await accounts.lock(tx, [account_id])
    existing = await templates.by_alias(tx, account_id, alias)
    if existing is None:
        await usage_limits.check_quota(ctx, tx, account_id, "templates")
        now = ctx.clock()
        template_id = ctx.new_id(identifiers.TEMPLATE, now=now)
        return templates.Template(template_id, account_id, alias, "", None, None, now, now, version=0)
    if is_new:
        raise errors.Conflict(f"alias: the template '{alias}' already exists; choose another alias, or edit that one")
    return existing


async def prepare(ctx: context.Context, account_id: str, content: Content, *, alias: str = "") -> templates.Template:
    """What is being edited as a template that can be rendered; refused if it cannot be saved."""
    empty = templates.Template("", account_id, alias, "", None, None, 0, 0)
    template = with_content(empty, content, uses=None)

    def check_all() -> templates.Template:
        check(subject=content.subject, text=content.text, html=content.html)
        used = rendering.used_aliases(text=content.text, html=content.html, layout=content.layout)
        return dataclasses.replace(template, uses=f" {' '.join(used)} " if used else None)

    checked = await _run(ctx, template, check_all)
    async with ctx.store.reading() as tx:
        loaded = await rendering.load_parts(tx, checked)
    await _run(ctx, loaded, lambda: rendering.check_layout(loaded))
    return loaded


def with_content(template: templates.Template, content: Content, *, uses: str | None) -> templates.Template:
    """The template with other content, which `prepare` says what it uses."""
    return dataclasses.replace(
        template,
        subject=content.subject,
        text=content.text or None,
        html=content.html or None,
        layout=content.layout or None,
        uses=uses,
    )


async def find(ctx: context.Context, account_id: str, alias: str) -> templates.Template:
    """A template that can be sent."""
    template = await find_any(ctx, account_id, alias)
    if not template.is_published:
        raise not_found()
    return template


async def find_any(ctx: context.Context, account_id: str, alias: str) -> templates.Template:
    """A template, published or not."""
    _refuse_impossible(alias)
    async with ctx.store.reading() as tx:
        template = await templates.by_alias(tx, account_id, alias)
    if template is None:
        raise not_found()
    return template


async def layouts(ctx: context.Context, account_id: str, limit: int) -> list[str]:
    """The aliases of the templates that others can name as their layout."""
    async with ctx.store.scanning(account_id) as tx:
        return await templates.layouts(tx, account_id, limit=limit)


async def find_with_parts(ctx: context.Context, account_id: str, alias: str) -> templates.Template:
    """One template of an account, with all that it needs to be rendered."""
    template = await find(ctx, account_id, alias)
    async with ctx.store.reading() as tx:
        return await rendering.load_parts(tx, template)


async def summaries(
    ctx: context.Context, account_id: str, after: str, limit: int, *, is_published: bool = True
) -> list[templates.Summary]:
    """A page of templates by alias, without bodies, which can be large; the first page is after an empty text."""
    async with ctx.store.scanning(account_id) as tx:
        return await templates.summaries(tx, account_id, after=after, limit=limit, is_published=is_published)


async def remove(ctx: context.Context, account_id: str, alias: str) -> None:
    _refuse_impossible(alias)
    grants.check_template(ctx.actor)
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        template = await templates.by_alias(tx, account_id, alias)
        if template is None:
            raise not_found()
        if (user := await templates.user_of(tx, account_id, alias)) is not None:
            raise errors.Conflict(f"the template '{user}' uses the template '{alias}'; change or remove it first")
        await templates.remove_versions(tx, template.id)
        await templates.remove(tx, account_id, alias)
        await audit_log.write(ctx, tx, account_id, "template.removed", alias)


async def preview(
    ctx: context.Context, account_id: str, alias: str, variables: Mapping[str, statuses.TemplateValue]
) -> rendering.Rendered:
    template = await find_with_parts(ctx, account_id, alias)
    validation.check_variables("variables", variables)
    return await _run(
        ctx, template, lambda: rendering.render(template, variables), is_long=rendering.has_lists(variables)
    )


async def _run(
    ctx: context.Context, template: templates.Template, work: Callable[[], T], *, is_long: bool = False
) -> T:
    """Do what parses or renders a template, in a thread if that takes long."""
    if is_long or rendering.is_costly(template):
        return await ctx.threads.run(template.account_id, work)
    return work()


def check(*, subject: str, text: str | None, html: str | None) -> None:
    validation.check_subject(subject)
    if not text and not html:
        raise errors.InvalidRequest("text: give at least one of text and html")
    for field, source in (("subject", subject), ("text", text), ("html", html)):
        _check_source(field, source or "")


def _check_source(field: str, source: str) -> None:
    if len(source) > BODY_CHARACTERS:
        raise errors.InvalidRequest(f"{field}: at most {BODY_CHARACTERS} characters")
    if unsendable := rendering.UNSENDABLE.search(source):
        raise errors.InvalidRequest(f"{field}: the character U+{ord(unsendable[0]):04X} is not allowed in mail")
    try:
        template = mustache.parse(source)
    except placeholders.TemplateError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None
    if field == "subject" and mustache.parts_of(template):
        raise errors.InvalidRequest(f"subject: {{{{> {mustache.parts_of(template)[0]}}}}} is only for bodies")


def _refuse_impossible(alias: str) -> None:
    if not validation.is_alias(alias):
        raise not_found()


def not_found() -> errors.NotFound:
    return errors.NotFound("no such template in this account")
