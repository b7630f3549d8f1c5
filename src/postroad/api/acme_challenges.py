"""Answers to HTTP-01 challenges (RFC 8555 section 8.3). Any host answers, because challenges are in the store."""

import asyncio
import re
from typing import Final

from postroad import context, errors
from postroad.storage.operations import certificates
from postroad.web import routing

PATH: Final = "/.well-known/acme-challenge/{token}"
# Anybody may ask: strangers must not occupy the connections to the database.
MAX_LOOKUPS: Final = 2
_TYPE: Final = "application/octet-stream"
# Base64url; the bound keeps long paths from the store.
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{16,200}")


def routes() -> tuple[routing.Route[context.Context], ...]:
    """The route. It is left out of the OpenAPI document because it is not part of the API."""
    turns = asyncio.Semaphore(MAX_LOOKUPS)

    async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
        token = request.path["token"]
        found = None
        if _TOKEN.fullmatch(token):
            async with turns, ctx.store.reading() as tx:
                found = await certificates.challenge(tx, token, now=ctx.clock())
        if found is None:
            raise errors.UnknownPath(routing.UNKNOWN_PATH)
        return routing.Response(200, found.key_authorization.encode(), content_type=_TYPE)

    return (
        routing.Route(
            method="GET",
            path=PATH,
            handler=show,
            summary="The answer to a challenge of a certificate authority",
            tag="Health",
            permission=None,
            responses={200: bytes},
            errors=(errors.NotFound,),
            content_type=_TYPE,
        ),
    )
