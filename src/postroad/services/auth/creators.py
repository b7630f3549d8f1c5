"""Who created API keys and SMTP credentials, and what happens to them when that person is removed.

Whoever removes a person sees what they made, and revokes it or answers for it from then on. Keys that operate the
installation are always revoked: the person who is removed may have their secrets, and they would have the rights of
whoever takes them over.
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


async def of_actor(ctx: context.Context, tx: store.Transaction, account_id: str) -> str | None:
    """The person who creates something; of what a key creates, the person who created that key."""
    who = ctx.actor.who
    if who is None or who.key is None:
        return ctx.actor.user_id
    creating = await stored_api_keys.by_id(tx, account_id, who.key.id)
    return None if creating is None else creating.created_by


async def made_by(ctx: context.Context, user: users.User) -> Made:
    """What a user created."""
    async with ctx.store.scanning(user.account_id) as tx:
        return await _made(tx, user)


async def settle(ctx: context.Context, tx: store.Transaction, user: users.User, secrets: SecretsAction) -> None:
    """Revoke what a user created, or hand it over to the acting person; a command without one leaves it as it is."""
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
    taker = await of_actor(ctx, tx, user.account_id)
    if not is_revoked and taker not in {None, user.id}:
        await stored_api_keys.hand_over(tx, user.account_id, user.id, to=taker or "")
        await stored_credentials.hand_over(tx, user.account_id, user.id, to=taker or "")


async def _made(tx: store.Transaction, user: users.User) -> Made:
    return Made(
        await stored_api_keys.of_creator(tx, user.account_id, user.id),
        await stored_credentials.of_creator(tx, user.account_id, user.id),
    )
