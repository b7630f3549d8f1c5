"""`/v1/api-keys`: the API keys of the account."""

from typing import Annotated, Final, Literal

import msgspec

from postroad import errors
from postroad.api.v1 import resource, schemas
from postroad.model import cursors, identifiers, labels, mail, times
from postroad.services import context
from postroad.services.auth import api_keys
from postroad.storage import api_keys as stored
from postroad.web import routing

RESOURCE: Final = resource.Resource("API keys", {"id": identifiers.pattern(identifiers.API_KEY)})

Scope = Literal["send", "read", "templates", "suppressions", "webhooks", "domains", "statistics", "team", "*"]
CredentialId = Annotated[
    str,
    schemas.id_of(
        identifiers.CREDENTIAL,
        "The SMTP credential that the key belongs to: it shares its idempotency keys and is revoked with it. "
        "Defaults to the oldest active one.",
    ),
]
Scopes = Annotated[
    list[Scope],
    msgspec.Meta(
        description="What the key may do: `send` by default; `*` is everything. A key cannot give scopes that it does "
        "not have, and only an owner can give `team` and `*`.",
        min_length=1,
        max_length=len(api_keys.SCOPE_WORDS),
    ),
]


Mode = Annotated[
    mail.Mode,
    msgspec.Meta(description="`live` (the default), or `test`: what the key sends goes to the simulator."),
]


class ApiKey(msgspec.Struct, frozen=True):
    """An API key without its secret. `hint` is the beginning of the secret."""

    id: str
    name: str
    credential_id: str
    hint: str
    mode: mail.Mode
    scopes: list[Scope]
    created_at: times.WireTime
    last_used_at: times.WireTime | None
    revoked_at: times.WireTime | None


class NewApiKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An API key to create."""

    name: Annotated[str, labels.NAME]
    credential_id: CredentialId | None = None
    scopes: Scopes | None = None
    mode: Mode | None = None


class CreatedApiKey(schemas.Response, frozen=True):
    """A new key with its secret, which is shown only once."""

    api_key: ApiKey
    secret: str


class ApiKeysQuery(schemas.PageQuery, frozen=True):
    """Pagination of the list."""

    cursor: Annotated[str, schemas.cursor_of(identifiers.pattern(identifiers.API_KEY))] | None = None


class ApiKeysResponse(schemas.Response, frozen=True):
    """API keys, oldest first, including revoked ones."""

    api_keys: list[ApiKey]
    next_cursor: schemas.NextCursor


def _api_key(row: stored.ApiKey) -> ApiKey:
    return schemas.from_record(ApiKey, row, scopes=row.scopes.split(), mode=api_keys.mode_of(row))


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List API keys."""
    query: ApiKeysQuery = request.query
    after = cursors.after(query.cursor, identifiers.API_KEY)
    found = await api_keys.of_account(ctx, request.caller.account_id, after=after, limit=query.rows + 1)
    rows, following = cursors.page(found, limit=query.rows)
    return routing.Response(200, ApiKeysResponse([*map(_api_key, rows)], following, request_id=request.id))


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create an API key.

    The secret is returned only in this response.
    """
    body: NewApiKey = request.body
    made, secret = await api_keys.create(
        ctx,
        request.caller.account_id,
        credential_id=body.credential_id,
        name=body.name,
        scopes=frozenset(body.scopes or ("send",)),
        mode=body.mode or mail.Mode.LIVE,
    )
    return routing.Response(201, CreatedApiKey(_api_key(made), secret, request_id=request.id))


async def revoke(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Revoke an API key.

    The key stops working everywhere within a second. It stays in the list.
    """
    await api_keys.revoke(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(204)


ROUTES: Final = (
    RESOURCE.route("GET /v1/api-keys", index, query=ApiKeysQuery, responses={200: ApiKeysResponse}),
    RESOURCE.route(
        "POST /v1/api-keys",
        create,
        body=NewApiKey,
        body_rules={
            "examples": [
                {"name": "shop"},
                {"name": "reports", "scopes": ["read", "statistics"]},
                {"name": "CI", "mode": "test"},
            ]
        },
        responses={201: CreatedApiKey},
        errors=(errors.NotFound, errors.Conflict),
    ),
    RESOURCE.route("DELETE /v1/api-keys/{id}", revoke, responses={204: None}),
)
