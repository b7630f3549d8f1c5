"""View as: an operator sees the pages of an account, read-only and for at most an hour.

A view is a signed value that the operator's browser keeps. It names the session that it belongs to, so it ends with
that session, and no other can use it; whoever reads it also checks that the caller is still an operator. It contains
the messages whose content may be shown. The account's audit log tells each of them, and the view itself, before the
value is made.
"""

from typing import Final

import msgspec

from postroad import context
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.messages import lookup
from postroad.services.people import sessions, tokens
from postroad.storage.people import accounts

VIEW_SECONDS: Final = 3_600
PURPOSE: Final = "view as"
# The value is in a cookie, which browsers keep up to 4 KB.
MAX_MESSAGES: Final = 20


class ViewAs(msgspec.Struct, frozen=True):
    """Who views which account, until when (in seconds since 1970), and the messages whose content is shown."""

    session_id: str
    account_id: str
    until: int
    message_ids: tuple[str, ...] = ()

    @property
    def ends_at(self) -> int:
        """Microseconds."""
        return self.until * times.SECOND


async def begin(ctx: context.Context, session: sessions.Session, account_id: str) -> ViewAs:
    """Begin a view; the context acts as an operator. Closed accounts can be viewed, too."""
    account = await account_registry.find(ctx, account_id)
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, account.id, "account.viewed", account.name)
    return ViewAs(session.claims.jti, account.id, ctx.clock() // times.SECOND + VIEW_SECONDS)


async def show_content(ctx: context.Context, view: ViewAs, message_id: str) -> ViewAs:
    """The view with the content of one more message; the context acts as an operator."""
    if message_id in view.message_ids:
        return view
    message, _ = await lookup.find(ctx, view.account_id, message_id)
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, view.account_id, "message.viewed", message.id)
    return msgspec.structs.replace(view, message_ids=(*view.message_ids, message.id)[-MAX_MESSAGES:])


async def account_of(ctx: context.Context, view: ViewAs) -> accounts.Account | None:
    """The account as it is now; None when it was removed."""
    async with ctx.store.reading() as tx:
        account = await accounts.by_id(tx, view.account_id)
    return account if account is not None and account.removed_at is None else None


def write(ctx: context.Context, view: ViewAs) -> str:
    return tokens.write_value(ctx, view, purpose=PURPOSE)


def read(ctx: context.Context, session: sessions.Session, value: str) -> ViewAs | None:
    """The view of a value, if it is ours, of this session, and not over."""
    view = tokens.read_value(ctx, value, ViewAs, purpose=PURPOSE)
    if view is None or ctx.clock() >= view.ends_at or view.session_id != session.claims.jti:
        return None
    return view
