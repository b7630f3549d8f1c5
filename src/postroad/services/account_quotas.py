"""Quotas of accounts: how many domains, credentials, keys, templates, webhooks, users and suppressions each may have.

A quota binds users and API keys, not operators and not the service. Services check it in the transaction that creates,
under a lock that everyone who creates such an object for the account holds, so that parallel requests cannot pass it
together. Ten revoked credentials or keys count as one: they are kept for reference, but not without limit.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from postroad import errors
from postroad.model import actors
from postroad.services import context
from postroad.storage import api_keys, credentials, domains, store, suppressions, templates, webhooks

# The settings of [quotas], and what they limit: one, and several.
NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "domains": ("domain", "domains"),
    "credentials": ("SMTP credential", "SMTP credentials"),
    "api_keys": ("API key", "API keys"),
    "templates": ("template", "templates"),
    "webhooks": ("webhook", "webhooks"),
    "users": ("user", "users"),
    "suppressions": ("suppressed address", "suppressed addresses"),
}
# What cannot be removed.
_REVOKED: Final = frozenset({"credentials", "api_keys"})
_COUNTS: Final[Mapping[str, Callable[[store.Transaction, str], Awaitable[int]]]] = {
    "domains": domains.count,
    "credentials": credentials.count,
    "api_keys": api_keys.count,
    "templates": templates.count,
    "webhooks": webhooks.count,
}


async def check(ctx: context.Context, tx: store.Transaction, account_id: str, kind: str) -> None:
    """Refuse one more object of a kind when the account has as many as its quota."""
    if _binds(ctx):
        refuse_beyond(ctx, kind, await _COUNTS[kind](tx, account_id))


async def check_suppressions(ctx: context.Context, account_id: str) -> None:
    """The same for the suppression list, before the transaction that adds to it.

    A list may be long, and counting it under a lock would make others wait. So those that add at the same moment, and
    one import, may exceed the quota: by how much is bounded.
    """
    if _binds(ctx):
        async with ctx.store.scanning() as tx:
            refuse_beyond(ctx, "suppressions", await suppressions.count(tx, account_id))


def refuse_beyond(ctx: context.Context, kind: str, count: int) -> None:
    """Refuse one more object when there are this many."""
    quota: int = getattr(ctx.settings.quotas, kind)
    if _binds(ctx) and count >= quota:
        limited = f"{quota} {NAMES[kind][0 if quota == 1 else 1]}"
        verb = "revoke" if kind in _REVOKED else "remove"
        raise errors.Conflict(
            f"the quota of this account is {limited}; {verb} one that you do not need, or ask the operator"
        )


def _binds(ctx: context.Context) -> bool:
    return ctx.actor.kind in {actors.Kind.PERSON, actors.Kind.API_KEY}
