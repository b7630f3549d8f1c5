"""All accounts of the installation, as operators see them: searched, and with what they send."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from postroad import context
from postroad.model.bounces import bounce_guard
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.accounts import account_registry, statistics
from postroad.services.domains import domain_registry as account_domains
from postroad.services.people import logins as auth_logins
from postroad.services.people import users as account_users
from postroad.storage.engine import store
from postroad.storage.mail import domains as stored_domains
from postroad.storage.mail import mail_counts
from postroad.storage.people import accounts
from postroad.storage.people import users as stored_users

DAY_HOURS: Final = 24
SEARCH_CHARACTERS: Final = 200


class ListedAccount(msgspec.Struct, frozen=True):
    """An account, its mail of the last day, and the counts of the bounce guard."""

    account: accounts.Account
    last_day: statistics.Counts
    guard: bounce_guard.Counts


class AccountDetails(msgspec.Struct, frozen=True):
    """An account with everything about it that an operator decides by."""

    account: accounts.Account
    sending: account_registry.Sending
    last_day: statistics.Counts
    last_month: statistics.Counts
    domains: Sequence[stored_domains.Domain]
    users: Sequence[stored_users.User]


async def page(ctx: context.Context, *, search: str, state: str, after: str, limit: int) -> list[ListedAccount]:
    """Accounts, oldest first: those whose name contains a text, or with this id, domain or user."""
    now = ctx.clock()
    exact = search if "@" not in search else auth_logins.email_key(search) or search
    async with ctx.store.scanning() as tx:
        found = await accounts.search(
            tx,
            pattern=audit_log.containing(accounts.name_key(search)),
            exact=exact.replace("\0", ""),
            state=state,
            after=after,
            limit=limit,
        )
        ids = [account.id for account in found]
        after_day = times.day_of(now) - ctx.settings.bounce_guard.days
        guards = await mail_counts.guard_sums(tx, ids, after_day=after_day) if ids else {}
        volumes = [await _volume(tx, account_id, now=now, hours=DAY_HOURS) for account_id in ids]
    return [
        ListedAccount(account, volume, guards.get(account.id, bounce_guard.Counts()))
        for account, volume in zip(found, volumes, strict=True)
    ]


async def details(ctx: context.Context, account_id: str) -> AccountDetails:
    account = await account_registry.find(ctx, account_id)
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        last_day = await _volume(tx, account_id, now=now, hours=DAY_HOURS)
        last_month = await _volume(tx, account_id, now=now, hours=30 * DAY_HOURS)
    return AccountDetails(
        account,
        await account_registry.sending(ctx, account),
        last_day,
        last_month,
        await account_domains.of_account(ctx, account_id),
        await account_users.of_account(ctx, account_id),
    )


async def names(ctx: context.Context, account_ids: Iterable[str]) -> dict[str, str]:
    """The names of accounts by id; those that were removed have none."""
    async with ctx.store.reading() as tx:
        found = [await accounts.by_id(tx, account_id) for account_id in account_ids]
    return {account.id: account.name for account in found if account is not None and account.removed_at is None}


async def emails(ctx: context.Context, user_ids: Iterable[str]) -> dict[str, str]:
    """The emails of users by id; those that were removed have none."""
    async with ctx.store.reading() as tx:
        found = [await stored_users.by_id(tx, user_id) for user_id in user_ids]
    return {user.id: user.email for user in found if user is not None}


async def _volume(tx: store.Transaction, account_id: str, *, now: int, hours: int) -> statistics.Counts:
    counts = await mail_counts.hourly_since(tx, account_id, from_hour=mail_counts.hour_of(now) - hours + 1)
    return statistics.Counts(*(count or 0 for count in counts))
