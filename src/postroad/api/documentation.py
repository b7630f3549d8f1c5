"""`/openapi.json` and `/docs`: the OpenAPI document and Swagger UI, both offline.

Swagger UI is vendored in `static/` with its version, licence and checksums. Its Content-Security-Policy allows only
scripts and styles of this host: nothing inline, nothing external. The document is made when it is first asked for:
most processes never need it.
"""

import asyncio
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

import msgspec

from postroad.api import openapi
from postroad.concurrency import lazy_value
from postroad.web import routing

TAG: Final = "Documentation"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The files change only with a release.
CACHE: Final = ("Cache-Control", "public, max-age=3600")
FILES: Final = (
    ("/docs/swagger-ui.css", "swagger-ui/swagger-ui.css", "text/css; charset=utf-8"),
    ("/docs/swagger-ui-bundle.js", "swagger-ui/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    ("/docs/start.js", "start.js", "text/javascript; charset=utf-8"),
)


def routes(
    described: Sequence[routing.Route[routing.ContextT]], *, version: str
) -> tuple[routing.Route[routing.ContextT], ...]:
    """The documentation routes for the described routes."""

    def describe() -> bytes:
        return msgspec.json.encode(openapi.document(described, version=version))

    document = lazy_value.LazyValue(lambda: asyncio.to_thread(describe))

    async def show(_context: object, _request: routing.Request) -> routing.Response:
        return routing.Response(200, await document.get())

    page = routing.Response(
        200,
        _static("page.html"),
        content_type="text/html; charset=utf-8",
        headers=(("Content-Security-Policy", POLICY),),
    )
    return (
        _route("/openapi.json", show, summary="The OpenAPI document"),
        _fixed("/docs", page, summary="Interactive API documentation"),
        *(
            _fixed(
                path,
                routing.Response(200, _static(name), content_type=kind, headers=(CACHE,)),
                summary="A static file of the documentation",
            )
            for path, name, kind in FILES
        ),
    )


def _static(name: str) -> bytes:
    return resources.files(__package__).joinpath("static", name).read_bytes()


def _fixed(path: str, answer: routing.Response, *, summary: str) -> routing.Route[Any]:
    async def give(_context: object, _request: routing.Request) -> routing.Response:
        return answer

    return _route(path, give, summary=summary)


def _route(path: str, handler: routing.Handler[Any], *, summary: str) -> routing.Route[Any]:
    return routing.Route(
        method="GET", path=path, handler=handler, summary=summary, tag=TAG, permission=None, responses={200: bytes}
    )
