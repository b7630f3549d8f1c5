"""`/v1/api-keys`: the API keys of the account."""

from typing import Annotated, Any, Final, Literal, get_args

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource, templates
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.model.units import identifiers, labels, times
from postroad.services.people import api_keys
from postroad.storage.people import credentials as stored
from postroad.web import routing

RESOURCE: Final = resource.Resource("API keys", {"id": identifiers.pattern(identifiers.API_KEY)})

Scope = Literal["send", "read", "templates", "suppressions", "webhooks", "domains", "statistics", "team", "*"]
# What a key may have: operators give the last one at the command line or in the dashboard.
GivenScope = Scope | Literal["operator"]
CredentialId = Annotated[
    str,
    resource.id_of(
        identifiers.CREDENTIAL,
        "The SMTP credential that the key belongs to: it shares its idempotency keys and is revoked with it. "
        "Defaults to the oldest active one; if the account has none, one is created.",
    ),
]
Scopes = Annotated[
    list[Scope],
    msgspec.Meta(
        description="What the key may do: `send` by default; `*` is everything. A key cannot give scopes that it does "
        "not have, and only an owner or an admin can give `team` and `*`.",
        min_length=1,
        max_length=len(get_args(Scope)),
    ),
]
# Names and networks, as patterns that tools can generate from; internationalized names and every form of a network or
# an address are accepted.
DOMAIN_PATTERN: Final = r"^(?:[A-Za-z0-9](?:-?[A-Za-z0-9]){0,31}\.){1,3}[A-Za-z](?:-?[A-Za-z0-9]){1,31}$"
_OCTET: Final = "(?:[1-9]?[0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_GROUP: Final = "[0-9A-Fa-f]{1,4}"
NETWORK_PATTERN: Final = (
    rf"^(?:{_OCTET}(?:\.{_OCTET}){{3}}|{_OCTET}(?:\.{_OCTET}){{2}}\.0/24|{_OCTET}\.0\.0\.0/8"
    rf"|{_GROUP}(?::{_GROUP}){{7}}|{_GROUP}:{_GROUP}::/32)$"
)
MAX_CHARACTERS: Final = 253
DomainName = Annotated[
    str,
    msgspec.Meta(max_length=MAX_CHARACTERS, extra_json_schema={"pattern": DOMAIN_PATTERN}),
]
Network = Annotated[str, msgspec.Meta(max_length=MAX_CHARACTERS, extra_json_schema={"pattern": NETWORK_PATTERN})]
Alias = Annotated[str, msgspec.Meta(max_length=MAX_CHARACTERS, extra_json_schema={"pattern": templates.ALIAS_PATTERN})]
Domains = Annotated[
    list[DomainName],
    msgspec.Meta(
        description="Sender domains that the key may use; empty or null: all.", max_length=api_keys.MAX_LIMIT_NAMES
    ),
]
Networks = Annotated[
    list[Network],
    msgspec.Meta(
        description="Networks that the key may be used from, such as `192.0.2.0/24`; empty or null: all.",
        max_length=api_keys.MAX_LIMIT_NAMES,
    ),
]
Templates = Annotated[
    list[Alias],
    msgspec.Meta(
        description="Aliases of the only templates that the key may send; empty or null: any message.",
        max_length=api_keys.MAX_LIMIT_NAMES,
    ),
]
RecipientsPerDay = Annotated[
    int,
    msgspec.Meta(
        description="Recipients that the key may send to per UTC day; null: no limit.",
        ge=1,
        le=api_keys.MAX_LIMIT_AMOUNT,
    ),
]
ApprovalAbove = Annotated[
    int,
    msgspec.Meta(
        description="A request to more recipients than this waits until a person approves it in the dashboard; null: "
        "none does.",
        ge=0,
        le=api_keys.MAX_LIMIT_AMOUNT,
    ),
]
CreditBudget = Annotated[
    int,
    msgspec.Meta(
        description="Credits that the key may use in total; null: no limit.", ge=1, le=api_keys.MAX_LIMIT_AMOUNT
    ),
]
ExpiresAt = Annotated[resource.Timestamp, msgspec.Meta(description="When the key stops working; null: never.")]


Mode = Annotated[
    statuses.Mode,
    msgspec.Meta(description="`live` (the default), or `test`: what the key sends goes to the simulator."),
]


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key without its secret. `hint` is the beginning of the secret.

    Usage is null where there is no such limit; a limit that is set later counts from then on.
    """

    id: str
    name: str
    credential_id: str
    hint: str
    mode: statuses.Mode
    scopes: list[GivenScope]
    domains: list[str]
    networks: list[str]
    templates: list[str]
    recipients_per_day: int | None
    recipients_today: Annotated[int | None, msgspec.Meta(description="Recipients on the current UTC day.")]
    credit_budget: int | None
    credits_used: Annotated[int | None, msgspec.Meta(description="Credits used of the budget.")]
    expires_at: times.WireTime | None
    approval_above: int | None
    created_at: times.WireTime
    created_by: resource.CreatedBy
    created_by_email: resource.CreatedByEmail
    last_used_at: times.WireTime | None
    disabled_at: resource.DisabledAt
    revoked_at: times.WireTime | None


class NewApiKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An API key to create."""

    name: Annotated[str, labels.LABEL]
    credential_id: CredentialId | None = None
    scopes: Scopes | None = None
    mode: Mode | None = None
    domains: Domains | None = None
    networks: Networks | None = None
    templates: Templates | None = None
    recipients_per_day: RecipientsPerDay | None = None
    credit_budget: CreditBudget | None = None
    expires_at: ExpiresAt | None = None
    approval_above: ApprovalAbove | None = None


class ApiKeyUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The members to change. Null removes a limit, as in a JSON merge patch (RFC 7396)."""

    name: Annotated[str, labels.LABEL] | None = None
    scopes: Scopes | None = None
    domains: Domains | msgspec.UnsetType | None = msgspec.UNSET
    networks: Networks | msgspec.UnsetType | None = msgspec.UNSET
    templates: Templates | msgspec.UnsetType | None = msgspec.UNSET
    recipients_per_day: RecipientsPerDay | msgspec.UnsetType | None = msgspec.UNSET
    credit_budget: CreditBudget | msgspec.UnsetType | None = msgspec.UNSET
    expires_at: ExpiresAt | msgspec.UnsetType | None = msgspec.UNSET
    approval_above: ApprovalAbove | msgspec.UnsetType | None = msgspec.UNSET


class ApiKeyResponse(resource.Response, frozen=True):
    """An API key."""

    api_key: ApiKey


class CreatedApiKey(resource.Response, frozen=True):
    """A new key with its secret, which is shown only once."""

    api_key: ApiKey
    secret: str


class ApiKeysQuery(resource.PageQuery, frozen=True):
    """Pagination of the list."""

    cursor: Annotated[str, resource.cursor_of(identifiers.pattern(identifiers.API_KEY))] | None = None


class ApiKeysResponse(resource.Response, frozen=True):
    """API keys, oldest first, including revoked and expired ones."""

    api_keys: list[ApiKey]
    next_cursor: resource.NextCursor


def key_view(row: stored.ApiKey, *, now: int) -> ApiKey:
    """A stored key in its public form."""
    limits = row.limits
    usage = callers.usage_on_day(row.usage or callers.KeyUsage(), now=now)
    return resource.from_record(
        ApiKey,
        row,
        scopes=row.scopes.split(),
        mode=api_keys.mode_of(row),
        domains=limits.domains,
        networks=limits.networks,
        templates=limits.templates,
        recipients_per_day=limits.recipients_per_day,
        recipients_today=None if limits.recipients_per_day is None else usage.recipients,
        credit_budget=limits.credit_budget,
        credits_used=None if limits.credit_budget is None else usage.credits,
        expires_at=times.optional_to_wire(limits.expires_at),
        approval_above=limits.approval_above,
    )


def _limits(body: NewApiKey | ApiKeyUpdate) -> dict[str, Any]:
    """The limits that a body has, as the service takes them; null means none."""
    given: dict[str, Any] = {}
    for member in callers.KeyLimits.__struct_fields__:
        value = getattr(body, member)
        if value is msgspec.UNSET:
            continue
        if member == "expires_at":
            given[member] = None if value is None else resource.parse_timestamp(member, value)
        else:
            given[member] = tuple(value or ()) if member in {"domains", "networks", "templates"} else value
    return given


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List API keys.

    Oldest first, including revoked and expired ones. The keys themselves are never returned.
    """
    query: ApiKeysQuery = request.query
    after = identifiers.after(query.cursor, identifiers.API_KEY)
    found = await api_keys.of_account(ctx, request.caller.account_id, after=after, limit=query.rows + 1)
    rows, following = identifiers.page(found, limit=query.rows)
    listed = [key_view(row, now=ctx.clock()) for row in rows]
    return routing.Response(200, ApiKeysResponse(listed, following, request_id=request.id))


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
        mode=body.mode or statuses.Mode.LIVE,
        limits=callers.KeyLimits(**_limits(body)),
    )
    return routing.Response(201, CreatedApiKey(key_view(made, now=ctx.clock()), secret, request_id=request.id))


async def change(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change the name, the scopes or the limits of an API key.

    Takes effect within a second. A key that changes keys gives none more than it has, itself included.
    """
    body: ApiKeyUpdate = request.body
    changed = await api_keys.change(
        ctx,
        request.caller.account_id,
        request.path["id"],
        name=body.name,
        scopes=None if body.scopes is None else frozenset(body.scopes),
        limits=_limits(body),
    )
    return routing.Response(200, ApiKeyResponse(key_view(changed, now=ctx.clock()), request_id=request.id))


async def revoke(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Revoke an API key.

    The key stops working everywhere within a second. It stays in the list.
    """
    await api_keys.revoke(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(204)


EXAMPLES: Final = (
    {"name": "shop"},
    {"name": "reports", "scopes": ["read", "statistics"]},
    {
        "name": "agency",
        "scopes": ["send"],
        "domains": ["news.example.com"],
        "networks": ["192.0.2.0/24", "2001:db8::/32"],
        "templates": ["welcome"],
        "recipients_per_day": 1000,
        "credit_budget": 20_000,
        "approval_above": 50,
        "expires_at": "2036-12-31T00:00:00Z",
    },
)
ROUTES: Final = (
    RESOURCE.route("GET /v1/api-keys", index, query=ApiKeysQuery, responses={200: ApiKeysResponse}),
    RESOURCE.route(
        "POST /v1/api-keys",
        create,
        body=NewApiKey,
        body_rules={"examples": list(EXAMPLES)},
        responses={201: CreatedApiKey},
        errors=(errors.NotFound, errors.Conflict),
    ),
    RESOURCE.route(
        "PATCH /v1/api-keys/{id}",
        change,
        body=ApiKeyUpdate,
        body_rules={
            "examples": [{"scopes": ["send", "read"]}, {"recipients_per_day": 5000, "expires_at": None}],
        },
        responses={200: ApiKeyResponse},
    ),
    RESOURCE.route("DELETE /v1/api-keys/{id}", revoke, responses={204: None}),
)
