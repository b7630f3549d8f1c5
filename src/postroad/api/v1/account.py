"""`/v1/account`: the caller's account, its credits and its ledger."""

from typing import Annotated, Final, Literal

import msgspec

from postroad import context
from postroad.api.v1 import resource
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.storage.people import accounts as stored_accounts
from postroad.web import routing

RESOURCE: Final = resource.Resource("Account")

LedgerPosition = Annotated[
    str, resource.id_of(identifiers.LEDGER, "Only entries older than this one: `next_before` of the previous page.")
]


class Credits(msgspec.Struct, frozen=True):
    """The balances: available, and reserved for mail in delivery."""

    available: int
    reserved: int


class Account(msgspec.Struct, frozen=True):
    """An account. A suspended account can read, but not send."""

    id: str
    name: str
    status: Literal["active", "suspended"]
    suspended_reason: str | None
    suspended_by: Annotated[
        Literal["operator", "bounce_guard"] | None,
        msgspec.Meta(description="Who suspended the account; null when it is active."),
    ]
    credits: Credits
    created_at: times.WireTime


class AccountDetails(Account, frozen=True, kw_only=True):
    """An account with its bounce guard state."""

    suspended_until: Annotated[
        times.WireTime | None,
        msgspec.Meta(
            description="When the bounce guard lets the account send again; null when it is active, or when only the "
            "operator can resume it."
        ),
    ]
    sending: accounts.Sending
    # Mail costs nothing: credits are off, or unlimited for this account.
    credits_unlimited: bool
    second_factor_required: Annotated[
        bool, msgspec.Meta(description="Whether every user of the account needs a second factor.")
    ]


class AccountChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to change."""

    second_factor_required: Annotated[
        bool,
        msgspec.Meta(description="True requires a second factor for every user, from their next request."),
    ]


class AccountResponse(resource.Response, frozen=True):
    """The account."""

    account: AccountDetails


class LedgerEntry(msgspec.Struct, frozen=True):
    """A change of the balances. Negative amounts are deductions."""

    id: str
    kind: Literal["grant", "reserve", "settle", "release"]
    available: int
    reserved: int
    message_id: str | None
    note: str | None
    created_at: times.WireTime


class LedgerQuery(resource.PageQuery, frozen=True):
    """Filters of the ledger."""

    before: LedgerPosition | None = None


class LedgerResponse(resource.Response, frozen=True):
    """Ledger entries, newest first. All entries add up to the balances."""

    entries: list[LedgerEntry]
    next_before: resource.NextBefore


def account(row: stored_accounts.Account) -> Account:
    """A stored account in its public form."""
    return resource.from_record(Account, row, credits=Credits(row.available, row.reserved))


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get the account, its credits and its bounce rates.

    Also whether it can send, and if not, since when and why.
    """
    return await _details(ctx, request, await accounts.find(ctx, request.caller.account_id))


async def change(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Require a second factor for all users, or no longer.

    Users without one can then only set one up, and their tokens are refused. Only for owners who are logged in: API
    keys get 401.
    """
    body: AccountChange = request.body
    changed = await accounts.require_second_factor(ctx, request.caller.account_id, required=body.second_factor_required)
    return await _details(ctx, request, changed)


async def _details(ctx: context.Context, request: routing.Request, found: stored_accounts.Account) -> routing.Response:
    details = AccountDetails(
        **msgspec.structs.asdict(account(found)),
        suspended_until=times.optional_to_wire(accounts.suspended_until(ctx, found)),
        sending=await accounts.sending(ctx, found),
        credits_unlimited=not credits.needs_credits(ctx, found),
        second_factor_required=found.second_factor_since is not None,
    )
    return routing.Response(200, AccountResponse(details, request_id=request.id))


async def show_ledger(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List ledger entries.

    Newest first. All entries of an account add up to its balances.
    """
    query: LedgerQuery = request.query
    found = await credits.ledger(ctx, request.caller.account_id, query.before, query.rows + 1)
    rows, older = identifiers.page(found, limit=query.rows)
    entries = [resource.from_record(LedgerEntry, row) for row in rows]
    return routing.Response(200, LedgerResponse(entries, older, request_id=request.id))


async def export_ledger(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Download the ledger as CSV.

    Oldest first, with the balances after each change. A cell that a spreadsheet would evaluate as a formula is prefixed
    with an apostrophe.
    """
    return routing.attachment("ledger.csv", credits.export_ledger(ctx, request.caller.account_id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/account", show, responses={200: AccountResponse}),
    RESOURCE.route(
        "PATCH /v1/account",
        change,
        permission=callers.Permission.OWN,
        # People decide this; the scope of the resource is one to read with.
        scope=None,
        body=AccountChange,
        body_rules={"examples": [{"second_factor_required": True}]},
        responses={200: AccountResponse},
    ),
    RESOURCE.route("GET /v1/account/ledger", show_ledger, query=LedgerQuery, responses={200: LedgerResponse}),
    RESOURCE.download("GET /v1/account/ledger.csv", export_ledger, content_type="text/csv"),
)
