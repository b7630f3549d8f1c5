"""Answers to HTTP-01 challenges (RFC 8555 section 8.3). Any host answers, because challenges are in the store."""

import re
from typing import Final

from postroad import errors
from postroad.services import context
from postroad.storage import acme
from postroad.web import routing

PATH: Final = "/.well-known/acme-challenge/{token}"
# Base64url; the same bound keeps long paths from the store.
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{16,200}")


async def _show(ctx: context.Context, request: routing.Request) -> routing.Response:
    token = request.path["token"]
    found = None
    if _TOKEN.fullmatch(token):
        async with ctx.store.reading() as tx:
            found = await acme.challenge(tx, token, now=ctx.clock())
    if found is None:
        raise errors.NotFound(routing.UNKNOWN_PATH)
    return routing.Response(200, found.key_authorization.encode(), content_type="application/octet-stream")


# It is left out of the OpenAPI document because it is not part of the API.
ROUTES: Final[tuple[routing.Route[context.Context], ...]] = (
    routing.Route(
        method="GET",
        path=PATH,
        handler=_show,
        summary="The answer to a challenge of a certificate authority",
        tag="Health",
        permission=None,
        responses={200: bytes},
        errors=(errors.NotFound,),
        content_type="application/octet-stream",
    ),
)
