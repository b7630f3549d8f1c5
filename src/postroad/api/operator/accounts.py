"""`/v1/operator/accounts`: every account, what it sends, and the changes that an operator makes."""

from typing import Annotated, Any, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api.v1 import account as own_account
from postroad.api.v1 import resource, team
from postroad.model.bounces import bounce_guard
from postroad.model.units import identifiers, labels, times
from postroad.services.accounts import account_registry, credits, directory, statistics
from postroad.services.people import password_links, users
from postroad.storage.people import accounts
from postroad.web import routing

RESOURCE: Final = resource.Resource("Accounts", {"id": identifiers.pattern(identifiers.ACCOUNT)})
State = Literal["active", "suspended", "closed"]
Cursor = Annotated[str, resource.cursor_of(identifiers.pattern(identifiers.ACCOUNT))]


class GuardCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of the bounce guard for its last days."""

    recipients: int
    bounces: int
    bounce_percent: float
    complaints: int
    complaint_percent: float


class OperatedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An account of the installation."""

    id: str
    name: str
    state: State
    suspended_reason: str | None
    suspended_by: Literal["operator", "bounce_guard"] | None
    suspended_at: times.WireTime | None
    closed_at: times.WireTime | None
    credits: own_account.Credits
    credits_unlimited: bool
    request_rate: Annotated[int | None, msgspec.Meta(description="Sends per second; null: the setting.")]
    recipients_per_day: Annotated[int | None, msgspec.Meta(description="Per UTC day; null: no limit.")]
    created_at: times.WireTime


class AccountInList(OperatedAccount, frozen=True, kw_only=True):
    """An account with its mail of the last 24 hours."""

    last_day: statistics.Counts
    guard: GuardCounts


class OperatedDomain(msgspec.Struct, frozen=True, kw_only=True):
    """A sender domain of an account."""

    id: str
    name: str
    verified_at: times.WireTime | None
    failing_since: times.WireTime | None


class AccountWithDetails(OperatedAccount, frozen=True, kw_only=True):
    """An account with its mail, its domains and its users."""

    sending: account_registry.Sending
    last_day: statistics.Counts
    last_30_days: statistics.Counts
    domains: list[OperatedDomain]
    users: list[team.TeamUser]


class OperatedAccountsQuery(resource.PageQuery, frozen=True):
    """Filters and pagination of accounts."""

    cursor: Cursor | None = None
    search: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=directory.SEARCH_CHARACTERS,
                description="Part of the name, or exactly an id, a sender domain or the email of a user.",
            ),
        ]
        | None
    ) = None
    state: State | None = None


class OperatedAccounts(resource.Response, frozen=True):
    """Accounts, oldest first."""

    accounts: list[AccountInList]
    next_cursor: resource.NextCursor


class OperatedAccountResponse(resource.Response, frozen=True):
    """An account as it is after a change."""

    account: OperatedAccount


class AccountDetailsResponse(resource.Response, frozen=True):
    """One account."""

    account: AccountWithDetails


class AccountUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields to change. Null removes a limit, as in a JSON merge patch (RFC 7396)."""

    name: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    credits_unlimited: Annotated[bool, msgspec.Meta(description="Whether mail costs no credits.")] | None = None
    request_rate: (
        Annotated[
            int,
            msgspec.Meta(
                ge=1,
                le=account_registry.MAX_RATE,
                description="Sends per second; null: the setting limits.request_rate.",
            ),
        ]
        | msgspec.UnsetType
        | None
    ) = msgspec.UNSET
    recipients_per_day: (
        Annotated[
            int,
            msgspec.Meta(
                ge=1,
                le=account_registry.MAX_RECIPIENTS,
                description="Recipients that the account may send to per UTC day; null: no limit.",
            ),
        ]
        | msgspec.UnsetType
        | None
    ) = msgspec.UNSET


class Suspension(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why an account is suspended."""

    reason: Annotated[
        str,
        msgspec.Meta(min_length=1, max_length=labels.REASON_CHARACTERS, description="Shown to senders in the error."),
    ]


class Recovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who has lost their second factor."""

    user_id: Annotated[str, resource.id_of(identifiers.USER, "A user of the account.")]


class CreditGrant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credits to add."""

    amount: Annotated[int, msgspec.Meta(ge=1, le=credits.MAX_CREDITS)]
    note: Annotated[str, msgspec.Meta(max_length=credits.NOTE_CHARACTERS)] | None = None


def _facts(ctx: context.Context, account: accounts.Account) -> dict[str, Any]:
    return {
        "state": account.state,
        "credits": own_account.Credits(account.available, account.reserved),
        "credits_unlimited": not credits.needs_credits(ctx, account),
    }


def _guard(counts: bounce_guard.Counts) -> GuardCounts:
    return GuardCounts(
        recipients=counts.recipients,
        bounces=counts.bounces,
        bounce_percent=bounce_guard.percent(counts.bounces, counts.recipients),
        complaints=counts.complaints,
        complaint_percent=bounce_guard.percent(counts.complaints, counts.recipients),
    )


def account_view(ctx: context.Context, account: accounts.Account) -> OperatedAccount:
    return resource.from_record(OperatedAccount, account, **_facts(ctx, account))


def _changed(ctx: context.Context, request: routing.Request, account: accounts.Account) -> routing.Response:
    return routing.Response(200, OperatedAccountResponse(account_view(ctx, account), request_id=request.id))


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List accounts.

    Oldest first, with their mail of the last 24 hours and the counts of the bounce guard.
    """
    query: OperatedAccountsQuery = request.query
    found = await directory.page(
        ctx,
        search=query.search or "",
        state=query.state or "",
        after=identifiers.after(query.cursor, identifiers.ACCOUNT),
        limit=query.rows + 1,
    )
    next_cursor = identifiers.next_cursor([account.account.id for account in found], limit=query.rows)
    listed = [
        resource.from_record(
            AccountInList,
            account.account,
            last_day=account.last_day,
            guard=_guard(account.guard),
            **_facts(ctx, account.account),
        )
        for account in found[: query.rows]
    ]
    return routing.Response(200, OperatedAccounts(listed, next_cursor, request_id=request.id))


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get an account with its mail, its domains and its users."""
    found = await directory.details(ctx, request.path["id"])
    shown = resource.from_record(
        AccountWithDetails,
        found.account,
        sending=found.sending,
        last_day=found.last_day,
        last_30_days=found.last_month,
        domains=[resource.from_record(OperatedDomain, domain) for domain in found.domains],
        users=[*map(team.user_view, found.users)],
        **_facts(ctx, found.account),
    )
    return routing.Response(200, AccountDetailsResponse(shown, request_id=request.id))


async def change(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Rename an account, set its limits, or give it unlimited credits."""
    body: AccountUpdate = request.body
    account_id = request.path["id"]
    if body == AccountUpdate():
        raise errors.InvalidRequest("name: give name, credits_unlimited, request_rate or recipients_per_day")
    account = await account_registry.find(ctx, account_id)
    if body.name is not None:
        await account_registry.rename(ctx, account_id, body.name)
    if body.credits_unlimited is not None:
        await credits.set_unlimited(ctx, account_id, unlimited=body.credits_unlimited)
    limits = {
        name: getattr(account if value is msgspec.UNSET else body, name)
        for name, value in (("request_rate", body.request_rate), ("recipients_per_day", body.recipients_per_day))
    }
    await account_registry.change_limits(ctx, account_id, **limits)
    return _changed(ctx, request, await account_registry.find(ctx, account_id))


async def suspend(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Suspend an account.

    It can no longer send, but can still read. The reason of an account that is suspended already is replaced.
    """
    body: Suspension = request.body
    return _changed(ctx, request, await account_registry.suspend(ctx, request.path["id"], body.reason))


async def resume(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Resume a suspended account."""
    return _changed(ctx, request, await account_registry.resume(ctx, request.path["id"]))


async def add_credits(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Add credits to an account."""
    body: CreditGrant = request.body
    return _changed(ctx, request, await credits.add(ctx, request.path["id"], body.amount, body.note))


async def close(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Close an account.

    Nobody can log in or send; queued mail is still delivered, and all data is kept.
    """
    return _changed(ctx, request, await account_registry.close(ctx, request.path["id"]))


async def reopen(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Reopen a closed account."""
    return _changed(ctx, request, await account_registry.reopen(ctx, request.path["id"]))


async def make_recovery_link(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a recovery link for a user of an account.

    For a user who has lost their second factor. Whoever opens the link sets a new password, in all accounts of the
    user, and the second factors are removed. It replaces the previous link.
    """
    body: Recovery = request.body
    made = await users.create_password_link(ctx, request.path["id"], body.user_id, is_recovery=True)
    link = password_links.url(ctx.settings, made.token)
    return routing.Response(200, team.PasswordLink(link, times.to_wire(made.expires_at), request_id=request.id))


def _change(endpoint: str, handler: routing.Handler[context.Context], **options: Any) -> resource.OperatorRoute:
    responses = {200: OperatedAccountResponse}
    return resource.operator_route(
        RESOURCE, endpoint, handler, responses=responses, errors=(errors.Conflict,), **options
    )


ROUTES: Final = (
    resource.operator_route(
        RESOURCE, "GET /v1/operator/accounts", index, query=OperatedAccountsQuery, responses={200: OperatedAccounts}
    ),
    resource.operator_route(RESOURCE, "GET /v1/operator/accounts/{id}", show, responses={200: AccountDetailsResponse}),
    _change("PATCH /v1/operator/accounts/{id}", change, body=AccountUpdate),
    _change("POST /v1/operator/accounts/{id}/suspend", suspend, body=Suspension),
    _change("POST /v1/operator/accounts/{id}/resume", resume),
    _change("POST /v1/operator/accounts/{id}/credits", add_credits, body=CreditGrant),
    _change("POST /v1/operator/accounts/{id}/close", close),
    _change("POST /v1/operator/accounts/{id}/reopen", reopen),
    resource.operator_route(
        RESOURCE,
        "POST /v1/operator/accounts/{id}/recovery-link",
        make_recovery_link,
        body=Recovery,
        responses={200: team.PasswordLink},
        errors=(errors.Conflict,),
    ),
)
