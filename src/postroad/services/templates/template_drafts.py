"""Drafts of templates, for people who edit them: saved as versions, and sent only once they are published.

`templates.put`, which programs call, saves and publishes at once.
"""

import dataclasses
import difflib
import itertools
from collections.abc import Iterator
from typing import Final

import msgspec

from postroad import context, errors
from postroad.mail.accept import rendering, validation
from postroad.model.mail import limits
from postroad.model.people import grants
from postroad.services import audit_log
from postroad.services.templates import templates
from postroad.storage.mail import templates as stored

COPY_SUFFIX: Final = "-copy"
# Of a copy after the first: the number and its hyphen. No account has a million templates.
NUMBER_CHARACTERS: Final = 7
# The lines of a diff around a change, and in all: comparing takes time with the square of the lines.
CONTEXT_LINES: Final = 3
MAX_LINES: Final = 2_000


class Difference(msgspec.Struct, frozen=True):
    """The changed lines of one part of a template, as of a unified diff."""

    part: str
    lines: tuple[str, ...]


async def latest(ctx: context.Context, template: stored.Template) -> stored.Version | None:
    """The version that was saved last: the draft, or the published one."""
    async with ctx.store.reading() as tx:
        return await stored.latest_version(tx, template.id)


def is_draft(version: stored.Version | None) -> bool:
    """Whether the version that was saved last is not published yet."""
    return version is not None and version.published_at is None


async def save(
    ctx: context.Context, account_id: str, alias: str, content: templates.Content, *, is_new: bool = False
) -> stored.Version:
    """Save a draft, also of a template that is not there yet. Nothing that is sent changes."""
    validation.check_alias("alias", alias)
    grants.check_template(ctx.actor)
    uses = (await templates.prepare(ctx, account_id, content, alias=alias)).uses
    async with ctx.store.transaction() as tx:
        template = await templates.lock(ctx, tx, account_id, alias, is_new=is_new)
        await rendering.load_parts(tx, templates.with_content(template, content, uses=uses))
        number = await templates.record_version(ctx, tx, template, content, is_published=False)
        if not template.is_published:
            await stored.put(tx, dataclasses.replace(template, subject=content.subject, updated_at=ctx.clock()))
        await audit_log.write(ctx, tx, account_id, "template.draft_saved", alias)
        saved = await stored.version(tx, template, number)
    if saved is None:
        raise _no_version()
    return saved


async def restore(ctx: context.Context, account_id: str, alias: str, number: int) -> stored.Version:
    """Save an old version again, as a draft."""
    version = await find(ctx, account_id, alias, number)
    return await save(ctx, account_id, alias, dataclasses.replace(templates.content_of(version), sample=version.sample))


async def duplicate(ctx: context.Context, account_id: str, alias: str) -> stored.Template:
    """Create a copy of what is published, with an alias of its own."""
    content = templates.content_of(await templates.find(ctx, account_id, alias))
    stem = alias[: limits.TEMPLATE_ALIAS_CHARACTERS - len(COPY_SUFFIX) - NUMBER_CHARACTERS] + COPY_SUFFIX
    async with ctx.store.reading() as tx:
        taken = await stored.aliases(tx, account_id, beginning=stem)
    names = (stem if number == 1 else f"{stem}-{number}" for number in itertools.count(1))
    return await templates.save(
        ctx, account_id, next(name for name in names if name not in taken), content, is_new=True
    )


async def history(ctx: context.Context, account_id: str, alias: str) -> list[stored.VersionSummary]:
    template = await templates.find_any(ctx, account_id, alias)
    async with ctx.store.reading() as tx:
        return await stored.versions(tx, template.id, limit=templates.MAX_VERSIONS + 1)


async def find(ctx: context.Context, account_id: str, alias: str, number: int) -> stored.Version:
    template = await templates.find_any(ctx, account_id, alias)
    async with ctx.store.reading() as tx:
        version = await stored.version(tx, template, number)
    if version is None:
        raise _no_version()
    return version


def differences(before: stored.Version, after: stored.Version) -> list[Difference]:
    """How two versions differ, part by part; parts that are the same are left out."""
    parts = {
        "Subject": (before.subject, after.subject),
        "Layout": (before.layout, after.layout),
        "HTML": (before.html, after.html),
        "Text": (before.text, after.text),
    }
    return [
        Difference(part, tuple(_lines(old or "", new or "")))
        for part, (old, new) in parts.items()
        if (old or "") != (new or "")
    ]


def _lines(old: str, new: str) -> Iterator[str]:
    was, now = old.splitlines(), new.splitlines()
    if len(was) + len(now) > MAX_LINES:
        yield f"@@ {len(was)} and {len(now)} lines are too many to compare @@"
        return
    changes = difflib.unified_diff(was, now, lineterm="", n=CONTEXT_LINES)
    # The names of the files, of which there are none.
    yield from (line for line in changes if line not in ("--- ", "+++ "))


def _no_version() -> errors.NotFound:
    return errors.NotFound("no such version of this template")
