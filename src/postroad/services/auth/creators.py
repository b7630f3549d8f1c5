"""Who created API keys and SMTP credentials, and what happens to them when that person is disabled or removed.

What a person created does not work while they are disabled: they may have its secrets. Whoever disables or removes a
person sees what they made, and may answer for it from then on, so that it keeps working; what a removed person made can
be revoked as well. Keys that operate the installation are always revoked: they would have the rights of whoever takes
them over.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from postroad.model import caller
from postroad.services import audit_log, context
from postroad.storage import api_keys as stored_api_keys
from postroad.storage import credentials as stored_credentials
from postroad.storage import known_networks, store, users


class SecretsAction(StrEnum):
    """What happens to the API keys and SMTP credentials that a removed person created."""

    HAND_OVER = "hand_over"
    REVOKE = "revoke"


class Made(msgspec.Struct, frozen=True):
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


async def made_by(ctx: context.Context, user: users.User) -> Made:
    """What a user created."""
    async with ctx.store.scanning(user.account_id) as tx:
        return await _made(tx, user)


async def settle(ctx: context.Context, tx: store.Transaction, user: users.User, secrets: SecretsAction) -> None:
    """Revoke what a user created, or hand it over to the acting person; after a command, nobody answers for it."""
    made = await _made(tx, user)
    is_revoked = secrets is SecretsAction.REVOKE
    for key in made.api_keys:
        if is_revoked or caller.Scope.OPERATOR in caller.scopes_of(key.scopes):
            await stored_api_keys.revoke(tx, user.account_id, key.id, now=ctx.clock())
            await audit_log.write(ctx, tx, user.account_id, "api_key.revoked", key.name)
    for credential in made.credentials if is_revoked else ():
        await stored_credentials.revoke(tx, user.account_id, credential.id, now=ctx.clock())
        await known_networks.remove(tx, credential.id)
        await audit_log.write(ctx, tx, user.account_id, "credential.revoked", credential.name, credential.username)
    if not is_revoked:
        taker = await of_actor(ctx, tx, user.account_id)
        to = None if taker is None else taker.id
        await stored_api_keys.hand_over(tx, user.account_id, user.id, to=to)
        await stored_credentials.hand_over(tx, user.account_id, user.id, to=to)


async def _made(tx: store.Transaction, user: users.User) -> Made:
    return Made(
        await stored_api_keys.of_creator(tx, user.account_id, user.id),
        await stored_credentials.of_creator(tx, user.account_id, user.id),
    )
