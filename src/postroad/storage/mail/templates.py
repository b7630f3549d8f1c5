"""Templates, identified within an account by their alias, and their versions."""

from dataclasses import astuple, dataclass

import msgspec

from postroad.storage.engine import queries, store


@dataclass(frozen=True, slots=True)
class Template:
    """A row of `templates`."""

    id: str
    account_id: str
    alias: str
    subject: str
    text: str | None
    html: str | None
    created_at: int
    updated_at: int
    # The number of the published version, 0 if none was published; a template from before there were versions has none.
    version: int | None = None
    layout: str | None = None
    # The aliases of layout and parts, each between spaces.
    uses: str | None = None
    # The templates of `uses`, and those that they use: not a column, but read with `mail/accept/rendering.py`.
    used: "tuple[Template, ...]" = ()

    @property
    def is_published(self) -> bool:
        """Whether it can be sent. Until then it has no body, and the subject of its draft."""
        return self.text is not None or self.html is not None


@dataclass(frozen=True, slots=True)
class Version:
    """A row of `template_versions`. `sample` has its test values as JSON."""

    template_id: str
    number: int
    account_id: str
    saved_at: int
    saved_by: str
    published_at: int | None
    layout: str | None
    subject: str
    text: str | None
    html: str | None
    sample: str | None


class VersionSummary(msgspec.Struct, frozen=True):
    """A row of `template_versions` without its content."""

    number: int
    saved_at: int
    saved_by: str
    published_at: int | None
    subject: str


class Summary(msgspec.Struct, frozen=True):
    """A row of `templates` without its bodies."""

    id: str
    alias: str
    subject: str
    has_text: bool
    has_html: bool
    created_at: int
    updated_at: int


async def put(tx: store.Transaction, template: Template) -> Template:
    """Create a template or replace the one with this alias; returns it as stored."""
    row = (template.id, template.account_id, template.alias, template.subject, template.text, template.html)
    published = (template.version, template.layout, template.uses)
    (stored,) = await tx.fetch("templates.put", *row, template.updated_at, *published)
    return Template(*stored)


@queries.row("templates.by_alias", Template)
async def by_alias(tx: store.Transaction, account_id: str, alias: str) -> Template | None: ...


async def summaries(
    tx: store.Transaction, account_id: str, *, after: str, limit: int, is_published: bool
) -> list[Summary]:
    """An account's templates by alias, without their bodies; those without a published version only if asked for."""
    rows = await tx.fetch("templates.summaries", account_id, after, limit, is_published)
    return [
        Summary(template_id, alias, subject, bool(has_text), bool(has_html), created_at, updated_at)
        for template_id, alias, subject, has_text, has_html, created_at, updated_at in rows
    ]


async def layouts(tx: store.Transaction, account_id: str, *, limit: int) -> list[str]:
    return [str(alias) for (alias,) in await tx.fetch("templates.layouts", account_id, limit)]


async def aliases(tx: store.Transaction, account_id: str, *, beginning: str) -> set[str]:
    rows = await tx.fetch("templates.aliases", account_id, f"{_escaped(beginning)}%")
    return {str(row[0]) for row in rows}


@queries.changed("templates.remove")
async def remove(tx: store.Transaction, account_id: str, alias: str) -> bool: ...
@queries.change("templates.remove_versions")
async def remove_versions(tx: store.Transaction, template_id: str) -> None: ...


async def user_of(tx: store.Transaction, account_id: str, alias: str) -> str | None:
    row = await tx.fetch_one("templates.user_of", account_id, f"% {_escaped(alias)} %")
    return str(row[0]) if row else None


async def add_version(tx: store.Transaction, version: Version) -> None:
    await tx.execute("templates.add_version", *astuple(version))


@queries.change("templates.publish_version")
async def publish_version(tx: store.Transaction, template_id: str, number: int, *, now: int) -> None: ...


async def keep_sample(tx: store.Transaction, version: Version, sample: str | None) -> None:
    await tx.execute("templates.keep_sample", version.template_id, version.number, sample)


async def version(tx: store.Transaction, template: Template, number: int) -> Version | None:
    row = await tx.fetch_one("templates.version", template.id, number, template.account_id)
    return Version(*row) if row else None


@queries.row("templates.latest_version", Version)
async def latest_version(tx: store.Transaction, template_id: str) -> Version | None: ...
@queries.rows("templates.versions", VersionSummary)
async def versions(tx: store.Transaction, template_id: str, *, limit: int) -> list[VersionSummary]: ...
@queries.change("templates.forget_versions")
async def forget_versions(tx: store.Transaction, template_id: str, *, until: int, published: int) -> None: ...
@queries.count("templates.count")
async def count(tx: store.Transaction, account_id: str) -> int: ...


def _escaped(alias: str) -> str:
    """An alias in a pattern of LIKE: of the characters that mean more there, it can have one."""
    return alias.replace("_", "!_")
