"""Templates, identified within an account by their alias."""

from dataclasses import dataclass

from postroad.storage import store


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


@dataclass(frozen=True, slots=True)
class Summary:
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
    (stored,) = await tx.fetch("templates.put", *row, template.updated_at)
    return Template(*stored)


async def by_alias(tx: store.Transaction, account_id: str, alias: str) -> Template | None:
    """One template of an account."""
    row = await tx.fetch_one("templates.by_alias", account_id, alias)
    return Template(*row) if row else None


async def page(tx: store.Transaction, account_id: str, *, after: str, limit: int) -> list[Template]:
    """An account's templates by alias."""
    return [Template(*row) for row in await tx.fetch("templates.page", account_id, after, limit)]


async def summaries(tx: store.Transaction, account_id: str, *, after: str, limit: int) -> list[Summary]:
    """An account's templates by alias, without their bodies."""
    rows = await tx.fetch("templates.summaries", account_id, after, limit)
    return [
        Summary(template_id, alias, subject, bool(has_text), bool(has_html), created_at, updated_at)
        for template_id, alias, subject, has_text, has_html, created_at, updated_at in rows
    ]


async def remove(tx: store.Transaction, account_id: str, alias: str) -> bool:
    """Delete a template."""
    return await tx.execute("templates.remove", account_id, alias) == 1


async def count(tx: store.Transaction, account_id: str) -> int:
    """How many templates an account has."""
    row = await tx.fetch_one("templates.count", account_id)
    return int(row[0]) if row else 0
