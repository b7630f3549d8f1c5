"""Versions of templates: every save adds one, `MAX_VERSIONS` are kept, and one of them is published.

The row of a template has the content that is sent. A version that was saved after the published one is the draft.
"""

from dataclasses import dataclass, replace
from typing import Final

from postroad.services import audit_log, context
from postroad.storage import store, templates

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


async def record(
    ctx: context.Context,
    tx: store.Transaction,
    template: templates.Template,
    content: Content,
    *,
    is_published: bool,
) -> int:
    """Add a version; returns its number. What was saved last is not saved again: only its sample values may change."""
    now = ctx.clock()
    latest = await templates.latest_version(tx, template.id) or await _first(ctx, tx, template, content)
    if latest is not None and content_of(latest) == replace(content, sample=None):
        if content.sample is not None:
            await templates.keep_sample(tx, latest, content.sample)
        if is_published:
            await templates.publish_version(tx, template.id, latest.number, now=now)
        return latest.number
    number = 1 if latest is None else latest.number + 1
    is_published = is_published or content_of(template) == replace(content, sample=None)
    await _add(ctx, tx, template, content, number=number, is_published=is_published)
    published = number if is_published else template.version or 1
    await templates.forget_versions(tx, template.id, until=number - _kept(content), published=published)
    return number


def _kept(content: Content) -> int:
    """How many versions of this size are kept."""
    size = sum(len(text or "") for text in (content.subject, content.text, content.html, content.sample))
    return min(MAX_VERSIONS, KEPT_CHARACTERS // max(1, size))


async def _first(
    ctx: context.Context, tx: store.Transaction, template: templates.Template, content: Content
) -> templates.Version | None:
    """The content of a template from before there were versions becomes the first one."""
    if template.version is not None or content_of(template) == replace(content, sample=None):
        return None
    await _add(ctx, tx, template, content_of(template), number=1, is_published=True)
    return await templates.latest_version(tx, template.id)


async def _add(
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
