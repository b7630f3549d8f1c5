"""Notices of the installation to the owners of an account, by mail from `operator.from`.

A notice is accepted, signed, queued and charged like any other message of the account that has verified the domain of
that address. An installation without such an account sends none: the dashboard shows the same.
"""

from typing import Final

from postroad.model import caller, identifiers, mail, send_request
from postroad.services import context
from postroad.services.acceptance import submit
from postroad.services.domains import registry as domains
from postroad.storage import users

# An account invites whom it likes, and notices have the reputation of the operator.
MAX_OWNERS: Final = 5


async def notify(ctx: context.Context, account_id: str, *, subject: str, text: str) -> int:
    """Queue a notice to the owners who can log in, the first ones if there are many; returns how many.

    Raises a PostroadError if it is not accepted.
    """
    sender = ctx.settings.operator.sender
    payer = await domains.verified_owner(ctx, sender.rpartition("@")[2]) if sender else None
    if payer is None:
        return 0
    async with ctx.store.reading() as tx:
        members = await users.of_account(tx, account_id)
    # Whoever has only been invited may have nothing to do with the account.
    joined = [one for one in members if one.joined_at is not None and one.disabled_at is None]
    owners = [one.email for one in joined if one.role == caller.Role.OWNER][:MAX_OWNERS]
    who = caller.Caller(payer, None, caller.Scheme.TOKEN, frozenset({caller.Permission.SEND}))
    for email in owners:
        request = send_request.SendRequest(
            sender=sender, to=email, subject=subject, text=text, headers={"Auto-Submitted": "auto-generated"}
        )
        request_id = ctx.new_id(identifiers.REQUEST, now=ctx.clock())
        await submit.submit(ctx, who, request, request_id=request_id, source=mail.Source.API, key=None)
    return len(owners)
