"""Resend's templates: create, get, list, update, remove, duplicate and publish.

Our templates are identified by an alias, so the alias is the id here. There are no drafts: what is saved can be sent,
and publishing changes nothing. A placeholder is `{{{NAME}}}` there and `{{NAME}}` here.
"""

import re
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.mail.accept import validation
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.templates import template_drafts, templates
from postroad.storage.mail import templates as stored
from postroad.web import routing
from postroad_resend import emails, payload

_THEIRS: Final = re.compile(r"\{\{\{ *([A-Za-z_][A-Za-z0-9_.\-]{0,63}) *\}\}\}")
_OURS: Final = re.compile(r"(?<!\{)\{\{ *([A-Za-z_][A-Za-z0-9_.\-]{0,63}) *\}\}(?!\})")
_NOT_IN_ALIAS: Final = re.compile(r"[^a-z0-9_-]+")


class Variable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A placeholder. Ours are found in the template, and have no type and no fallback."""

    key: str
    type: str | None = None
    fallback_value: Any = None


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A template, or the members of one to change."""

    name: str | None = None
    alias: str | None = None
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    sender: Any = msgspec.field(name="from", default=None)
    reply_to: Any = None
    variables: list[Variable] | None = None


def _refuse_unsupported(body: Template) -> None:
    if body.sender is not None:
        raise payload.unsupported("from")
    if body.reply_to not in (None, []):
        raise payload.unsupported("reply_to")
    for place, variable in enumerate(body.variables or []):
        if variable.fallback_value is not None:
            raise payload.unsupported(f"variables[{place}].fallback_value")


def _ours(text: str | None) -> str | None:
    return None if text is None else _THEIRS.sub(r"{{\1}}", text)


def _theirs(text: str | None) -> str | None:
    return None if text is None else _OURS.sub(r"{{{\1}}}", text)


def _alias(body: Template) -> str:
    given = body.alias or _NOT_IN_ALIAS.sub("-", (body.name or "").lower()).strip("-")
    if not given:
        raise errors.InvalidRequest("name: required; letters, digits, '-' and '_' of it become the alias")
    return validation.check_alias("alias", given)


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a template; one with this alias must not exist."""
    body: Template = request.body
    _refuse_unsupported(body)
    account_id, alias = request.caller.account_id, _alias(body)
    if await _exists(ctx, account_id, alias):
        raise errors.Conflict(f"alias: a template {alias!r} already exists; update it, or choose another alias")
    await templates.put(
        ctx, account_id, alias, subject=_ours(body.subject) or "", text=_ours(body.text), html=_ours(body.html)
    )
    return extension_api.respond({"object": "template", "id": alias}, status=201)


async def _exists(ctx: context.Context, account_id: str, alias: str) -> bool:
    try:
        await templates.find(ctx, account_id, alias)
    except errors.NotFound:
        return False
    return True


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """A template."""
    row = await templates.find(ctx, request.caller.account_id, request.path["id"])
    created_at, updated_at = times.to_wire(row.created_at), times.to_wire(row.updated_at)
    return extension_api.respond(
        {
            "object": "template",
            **_summary(row),
            "subject": _theirs(row.subject),
            "html": _theirs(row.html) or "",
            "text": _theirs(row.text),
            "from": None,
            "reply_to": None,
            "variables": [
                {
                    "key": name,
                    "type": "string",
                    "fallback_value": None,
                    "created_at": created_at,
                    "updated_at": updated_at,
                }
                for name in await templates.names(ctx, row)
            ],
            "has_unpublished_versions": False,
            "current_version_id": row.id,
        }
    )


def _summary(row: stored.Template | stored.Summary) -> dict[str, Any]:
    return {
        "id": row.alias,
        "name": row.alias,
        "alias": row.alias,
        "status": "published",
        "published_at": times.to_wire(row.updated_at),
        "created_at": times.to_wire(row.created_at),
        "updated_at": times.to_wire(row.updated_at),
    }


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List templates by alias."""
    query: emails.Page = request.query
    after = "" if query.after is None else validation.check_alias("after", query.after)
    found = await templates.summaries(ctx, request.caller.account_id, after, query.rows + 1)
    data = [_summary(row) for row in found[: query.rows]]
    return extension_api.respond({"object": "list", "has_more": len(found) > query.rows, "data": data})


async def update(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change members of a template; those that are not given stay."""
    body: Template = request.body
    _refuse_unsupported(body)
    row = await templates.find(ctx, request.caller.account_id, request.path["id"])
    if body.alias not in (None, row.alias):
        raise payload.unsupported("alias: renaming")
    await templates.put(
        ctx,
        request.caller.account_id,
        row.alias,
        subject=_ours(body.subject) or row.subject,
        text=row.text if body.text is None else _ours(body.text),
        html=row.html if body.html is None else _ours(body.html),
        layout=row.layout,
    )
    return extension_api.respond({"object": "template", "id": row.alias})


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove a template."""
    alias = request.path["id"]
    await templates.remove(ctx, request.caller.account_id, alias)
    return extension_api.respond({"object": "template", "id": alias, "deleted": True})


async def duplicate(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a copy under another alias."""
    row = await template_drafts.duplicate(ctx, request.caller.account_id, request.path["id"])
    return extension_api.respond({"object": "template", "id": row.alias}, status=201)


async def publish(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Nothing to do: a template can be sent as soon as it is saved."""
    row = await templates.find(ctx, request.caller.account_id, request.path["id"])
    return extension_api.respond({"object": "template", "id": row.alias})


def _route(endpoint: str, handler: routing.Handler[context.Context], **options: Any) -> extension_api.Route:
    return extension_api.route(endpoint, handler, scope=callers.Scope.TEMPLATES, **options)


ROUTES: Final = (
    _route("POST /templates", create, body=Template),
    _route("GET /templates", index, query=emails.Page, permission=callers.Permission.CONTENT),
    _route("GET /templates/{id}", show, permission=callers.Permission.CONTENT),
    _route("PATCH /templates/{id}", update, body=Template),
    _route("DELETE /templates/{id}", remove),
    _route("POST /templates/{id}/duplicate", duplicate),
    _route("POST /templates/{id}/publish", publish),
)
