"""A client of one room, and API keys for it. Requests go to the application itself, without a socket."""

import contextlib
from collections.abc import AsyncIterator, Mapping

import httpx
import structlog

from postroad.compat import room as compat_room
from postroad.compat import rooms
from postroad.model import caller, key_limits, mail
from postroad.services import context
from postroad.services.auth import api_keys, credentials

EVERY_SCOPE = frozenset(caller.Scope)


@contextlib.asynccontextmanager
async def opened(
    ctx: context.Context, room: compat_room.Room, headers: Mapping[str, str] | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose base URL is the room's."""
    log = structlog.wrap_logger(
        structlog.ReturnLogger(), wrapper_class=structlog.make_filtering_bound_logger("critical")
    )
    app = rooms.build_application(ctx, room, log=log)
    url = f"http://postroad.test{room.prefix}"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=url, headers=headers) as client:
        yield client


async def new_key(
    ctx: context.Context,
    account_id: str,
    scopes: frozenset[str] = EVERY_SCOPE,
    *,
    mode: mail.Mode = mail.Mode.LIVE,
    limits: key_limits.Limits = key_limits.NO_LIMITS,
) -> str:
    """The secret of a new API key."""
    await credentials.create(ctx, account_id, name="compat")
    _, secret = await api_keys.create(
        ctx, account_id, credential_id=None, name="compat", scopes=scopes, mode=mode, limits=limits
    )
    return secret
