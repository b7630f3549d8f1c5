"""Resend's API keys: create, list, rename and remove.

`sending_access` is our scope `send`, and `full_access` every scope. No key gives more than it has.
"""

from typing import Any, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services.domains import domain_registry
from postroad.services.people import api_keys
from postroad.storage.people import credentials as stored
from postroad.web import routing
from postroad_resend import emails

PERMISSIONS: Final = {
    "full_access": callers.SCOPES,
    "sending_access": frozenset({callers.Scope.SEND}),
}


class NewApiKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An API key to create."""

    name: str
    permission: Literal["full_access", "sending_access"] | None = None
    domain_id: str | None = None


class Rename(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another name."""

    name: str


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a key of the caller's own SMTP credential; its secret is shown only now."""
    body: NewApiKey = request.body
    account_id = request.caller.account_id
    limits = callers.NO_LIMITS
    if body.domain_id is not None:
        if body.permission != "sending_access":
            raise errors.InvalidRequest("domain_id: only a key with permission sending_access can have a domain")
        domain = await domain_registry.find(ctx, account_id, body.domain_id)
        limits = callers.KeyLimits(domains=(domain.name,))
    made, secret = await api_keys.create(
        ctx,
        account_id,
        credential_id=None,
        name=body.name,
        scopes=PERMISSIONS[body.permission or "full_access"],
        limits=limits,
    )
    return extension_api.respond({"id": made.id, "token": secret}, status=201)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List the keys that are not revoked, oldest first."""
    query: emails.Page = request.query
    after = identifiers.after(query.after, identifiers.API_KEY)
    found = await api_keys.of_account(ctx, request.caller.account_id, after=after)
    active = [row for row in found if row.revoked_at is None]
    rows, following = identifiers.page(active, limit=query.rows)
    return extension_api.respond(
        {"object": "list", "has_more": following is not None, "data": [_shown(row) for row in rows]}
    )


async def update(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Rename a key."""
    body: Rename = request.body
    changed = await api_keys.change(ctx, request.caller.account_id, request.path["id"], name=body.name)
    return extension_api.respond({"object": "api_key", "id": changed.id})


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Revoke a key."""
    await api_keys.revoke(ctx, request.caller.account_id, request.path["id"])
    return extension_api.respond({"object": "api_key", "id": request.path["id"], "deleted": True})


def _shown(row: stored.ApiKey) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "created_at": times.to_wire(row.created_at),
        "last_used_at": times.optional_to_wire(row.last_used_at),
    }


def _route(endpoint: str, handler: routing.Handler[context.Context], **options: Any) -> extension_api.Route:
    return extension_api.route(endpoint, handler, scope=callers.Scope.TEAM, **options)


ROUTES: Final = (
    _route("POST /api-keys", create, body=NewApiKey),
    _route("GET /api-keys", index, query=emails.Page),
    _route("PATCH /api-keys/{id}", update, body=Rename),
    _route("DELETE /api-keys/{id}", remove),
)
