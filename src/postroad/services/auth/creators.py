"""Who created API keys and SMTP credentials, and what happens to them when that person is disabled or removed.

What a person created does not work while they are disabled: they may have its secrets. Whoever disables or removes a
person sees what they created, and may take it over, so that it keeps working; what a removed person created can be
revoked as well. Keys that operate the installation are always revoked: they would have the rights of whoever takes them
over.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from postroad import errors
from postroad.model import caller
from postroad.services import audit_log, context
from postroad.storage import api_keys as stored_api_keys
from postroad.storage import credentials as stored_credentials
from postroad.storage import known_networks, store, users


class SecretsAction(StrEnum):
    """What happens to the API keys and SMTP credentials that a removed person created."""

    HAND_OVER = "hand_over"
    REVOKE = "revoke"


class Created(msgspec.Struct, frozen=True):
    """What a person created and what is still active, oldest first."""

    api_keys: Sequence[stored_api_keys.ApiKey]
    credentials: Sequence[stored_credentials.Credential]


async def of_actor(ctx: context.Context, tx: store.Transaction, account_id: str) -> users.Creator | None:
    """The person who creates something; of what a key creates, the person who created that key."""
    who = ctx.actor.who
    if who is None or who.key is None:
        user = await users.by_id(tx, ctx.actor.user_id) if ctx.actor.user_id is not None else None
        return None if user is None else users.Creator(user.id, user.email, user.role, user.operator_since)
    creating = await stored_api_keys.by_id(tx, account_id, who.key.id)
    return None if creating is None else creating.creator


async def created_by(ctx: context.Context, user: users.User) -> Created:
    """What a user created."""
    async with ctx.store.scanning(user.account_id) as tx:
        return await _created(tx, user)


async def settle(ctx: context.Context, tx: store.Transaction, user: users.User, secrets: SecretsAction) -> Created:
    """Revoke what a user created, or hand it over to the acting person; returns what was revoked."""
    created = await _created(tx, user)
    revoked = created
    if secrets is SecretsAction.HAND_OVER:
        revoked = Created([one for one in created.api_keys if _operates(one)], [])
    for key in revoked.api_keys:
        await stored_api_keys.revoke(tx, user.account_id, key.id, now=ctx.clock())
        await audit_log.write(ctx, tx, user.account_id, "api_key.revoked", key.name)
    for credential in revoked.credentials:
        await stored_credentials.revoke(tx, user.account_id, credential.id, now=ctx.clock())
        await known_networks.remove(tx, credential.id)
        await audit_log.write(ctx, tx, user.account_id, "credential.revoked", credential.name, credential.username)
    if revoked != created:
        await _hand_over(ctx, tx, user)
    return revoked


async def _hand_over(ctx: context.Context, tx: store.Transaction, user: users.User) -> None:
    """Make the acting person the creator; after a command, there is none."""
    taker = await of_actor(ctx, tx, user.account_id)
    if taker is not None and taker.id == user.id:
        raise errors.Conflict(
            "you cannot hand over your API keys and SMTP credentials to yourself; somebody else has to take them over"
        )
    to = None if taker is None else taker.id
    await stored_api_keys.hand_over(tx, user.account_id, user.id, to=to)
    await stored_credentials.hand_over(tx, user.account_id, user.id, to=to)
    action = "user.secrets_kept" if taker is None else "user.secrets_handed_over"
    await audit_log.write(ctx, tx, user.account_id, action, user.email)


def _operates(key: stored_api_keys.ApiKey) -> bool:
    return caller.Scope.OPERATOR in caller.scopes_of(key.scopes)


async def _created(tx: store.Transaction, user: users.User) -> Created:
    return Created(
        await stored_api_keys.of_creator(tx, user.account_id, user.id),
        await stored_credentials.of_creator(tx, user.account_id, user.id),
    )
