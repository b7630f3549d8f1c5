"""`/v1/account`: the caller's account, its credits and its ledger."""

import dataclasses
from typing import Annotated, Final, Literal

import msgspec

from postroad.api.v1 import resource, schemas
from postroad.model import cursors, identifiers, times
from postroad.services import context
from postroad.services.accounts import credits, ledger_csv
from postroad.services.accounts import registry as accounts
from postroad.storage import accounts as stored_accounts
from postroad.storage import ledger
from postroad.web import routing

RESOURCE: Final = resource.Resource("Account")

CSV: Final = "text/csv"


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


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """The bounce guard's counts for the last days, and the account's state."""

    state: Annotated[
        accounts.State,
        msgspec.Meta(
            description="`warned`: a warning threshold is reached. `suspended`: the guard has suspended "
            "the account. `off`: "
            "this installation has no bounce guard, and nothing is counted."
        ),
    ]
    days: Annotated[int, msgspec.Meta(description="Number of UTC days counted, today included.")]
    recipients: Annotated[int, msgspec.Meta(description="Recipients of these days that were attempted and are final.")]
    bounces: Annotated[int, msgspec.Meta(description="Recipients among them whose address does not exist.")]
    bounce_percent: Annotated[float, msgspec.Meta(description="`bounces` as a percentage of `recipients`.")]
    complaints: Annotated[int, msgspec.Meta(description="Complaints reported by mailbox providers.")]
    complaint_percent: Annotated[float, msgspec.Meta(description="`complaints` as a percentage of `recipients`.")]
    min_recipients: Annotated[
        int, msgspec.Meta(description="With fewer recipients than this, the guard neither warns nor suspends.")
    ]
    warn_percent: Annotated[float, msgspec.Meta(description="The account is warned at this `bounce_percent`.")]
    suspend_percent: Annotated[float, msgspec.Meta(description="The account is suspended at this `bounce_percent`.")]
    complaint_warn_percent: Annotated[
        float, msgspec.Meta(description="The account is warned at this `complaint_percent`.")
    ]
    complaint_suspend_percent: Annotated[
        float,
        msgspec.Meta(description="The account is suspended at this `complaint_percent`, with at least two complaints."),
    ]


class AccountDetails(Account, frozen=True, kw_only=True):
    """An account with its bounce guard state."""

    sending: Sending


class AccountResponse(msgspec.Struct, frozen=True):
    """The account."""

    account: AccountDetails
    request_id: str


class LedgerEntry(msgspec.Struct, frozen=True):
    """A change of the balances. Negative amounts are deductions."""

    id: str
    kind: Literal["grant", "reserve", "settle", "release"]
    available: int
    reserved: int
    message_id: str | None
    note: str | None
    created_at: times.WireTime


class LedgerQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Filters of the ledger."""

    limit: schemas.Limit | None = cursors.DEFAULT_LIMIT
    before: (
        Annotated[
            str,
            msgspec.Meta(
                description="Only entries older than this one: `next_before` of the previous page.",
                extra_json_schema={"pattern": identifiers.pattern(identifiers.LEDGER)},
            ),
        ]
        | None
    ) = None


class LedgerResponse(msgspec.Struct, frozen=True):
    """Ledger entries, newest first. All entries add up to the balances."""

    entries: list[LedgerEntry]
    next_before: Annotated[
        str | None, msgspec.Meta(description="Pass as `before` for older entries; null on the last page.")
    ]
    request_id: str


def account(row: stored_accounts.Account) -> Account:
    """A stored account in its public form."""
    return Account(
        id=row.id,
        name=row.name,
        status="suspended" if row.status == stored_accounts.SUSPENDED else "active",
        suspended_reason=row.suspended_reason,
        suspended_by=_suspended_by(row.suspended_by),
        credits=Credits(available=row.available, reserved=row.reserved),
        created_at=times.to_wire(row.created_at),
    )


def _suspended_by(text: str | None) -> Literal["operator", "bounce_guard"] | None:
    if text is None:
        return None
    return "bounce_guard" if text == stored_accounts.BOUNCE_GUARD else "operator"


def _entry(row: ledger.Entry) -> LedgerEntry:
    return LedgerEntry(
        id=row.id,
        kind=ledger.Kind(row.kind).value,
        available=row.available,
        reserved=row.reserved,
        message_id=row.message_id,
        note=row.note,
        created_at=times.to_wire(row.created_at),
    )


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get the account, its credits and its bounce rates."""
    found = await accounts.find(ctx, request.caller.account_id)
    guard_status = Sending(**dataclasses.asdict(await accounts.sending(ctx, found)))
    details = AccountDetails(**msgspec.structs.asdict(account(found)), sending=guard_status)
    return routing.Response(200, AccountResponse(details, request.id))


async def show_ledger(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List ledger entries."""
    query: LedgerQuery = request.query
    limit = query.limit or cursors.DEFAULT_LIMIT
    found = await credits.ledger(ctx, request.caller.account_id, query.before, limit + 1)
    older = cursors.next_cursor([entry.id for entry in found], limit=limit)
    return routing.Response(200, LedgerResponse([_entry(row) for row in found[:limit]], older, request.id))


async def export_ledger(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Download the ledger as CSV.

    Oldest first, with the balances after each change. A cell that a spreadsheet would evaluate as a formula is prefixed
    with an apostrophe.
    """
    parts = ledger_csv.export(ctx, request.caller.account_id)
    disposition = ("Content-Disposition", 'attachment; filename="ledger.csv"')
    return routing.Response(200, parts, headers=(disposition,), content_type=f"{CSV}; charset=utf-8")


ROUTES: Final = (
    RESOURCE.route("GET /v1/account", show, responses={200: AccountResponse}),
    RESOURCE.route("GET /v1/account/ledger", show_ledger, query=LedgerQuery, responses={200: LedgerResponse}),
    RESOURCE.route(
        "GET /v1/account/ledger.csv",
        export_ledger,
        responses={200: bytes},
        content_type=CSV,
        response_headers={"Content-Disposition": "Always `attachment`."},
    ),
)
