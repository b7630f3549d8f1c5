"""What people have chosen to get by mail: at once, in the digest or not at all, by kind; and links that end a kind.

A link needs no login (RFC 8058): it names a person and a kind, and is signed. It can do nothing but end that kind for
that person, and so it does not expire.
"""

import hashlib
import hmac
from collections.abc import Mapping

from postroad import config, context, errors
from postroad.mail import notice_kinds
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.services import audit_log
from postroad.storage.operations import notices
from postroad.storage.people import users


def offered(user: users.User) -> dict[str, notice_kinds.Kind]:
    """The kinds that a person may get and can choose about."""
    audiences = set()
    if user.role == callers.Role.OWNER:
        audiences.add(notice_kinds.Audience.OWNERS)
    if user.operator_since is not None:
        audiences.add(notice_kinds.Audience.OPERATORS)
    return {name: kind for name, kind in notice_kinds.KINDS.items() if kind.audience in audiences}


def choice_of(kind: str, chosen: Mapping[str, str]) -> notice_kinds.Choice:
    """How a person who has chosen this gets a kind. Security mail always comes at once."""
    known = notice_kinds.KINDS[kind]
    return known.choice if known.is_security else notice_kinds.Choice(chosen.get(kind, known.choice))


async def of_user(ctx: context.Context, user: users.User) -> dict[str, notice_kinds.Choice]:
    """The choices of a person, for every kind that is offered and can come."""
    async with ctx.store.reading() as tx:
        chosen = await notices.choices(tx, user.id)
    has_credits = ctx.settings.credits.enabled
    shown = [kind for kind in offered(user) if has_credits or kind != notice_kinds.CREDITS_LOW]
    return {kind: choice_of(kind, chosen) for kind in shown}


async def choose(ctx: context.Context, user: users.User, kind: str, choice: notice_kinds.Choice) -> None:
    if kind not in notice_kinds.KINDS or notice_kinds.KINDS[kind].is_security:
        raise errors.InvalidRequest(f"kind: {kind!r} is not a kind of mail that can be chosen")
    async with ctx.store.transaction() as tx:
        before = choice_of(kind, await notices.choices(tx, user.id))
        if before is choice:
            return
        await notices.choose(tx, user.id, kind, choice)
        await audit_log.write(ctx, tx, user.account_id, "user.notices_changed", user.email, f"{kind} to {choice}")


async def by_token(ctx: context.Context, token: str) -> tuple[users.User, str]:
    """The person and the kind that a link names."""
    named, _, signature = token.rpartition(".")
    user_id, _, kind = named.partition(".")
    keys = (ctx.keys.session, *(previous.session for previous in ctx.keys.previous))
    is_signed = any(hmac.compare_digest(_signature(key, named), signature.encode()) for key in keys)
    if is_signed and identifiers.is_identifier(user_id, identifiers.USER) and kind in notice_kinds.KINDS:
        async with ctx.store.reading() as tx:
            user = await users.by_id(tx, user_id)
        if user is not None:
            return user, kind
    raise errors.NotFound("this link is invalid; log in and choose on your profile what you get by email")


async def unsubscribe(ctx: context.Context, token: str) -> tuple[users.User, str]:
    """End the kind that a link names for its person, who acts by it."""
    user, kind = await by_token(ctx, token)
    await choose(context.as_person(ctx, user.id), user, kind, notice_kinds.Choice.OFF)
    return user, kind


def unsubscribe_url(ctx: context.Context, user_id: str, kind: str) -> str:
    """The link that ends a kind for a person."""
    named = f"{user_id}.{kind}"
    return f"{config.base_url(ctx.settings)}/notices/{named}.{_signature(ctx.keys.session, named).decode()}"


def _signature(key: bytes, named: str) -> bytes:
    return hmac.new(key, b"notice " + named.encode(), hashlib.sha256).hexdigest().encode()
