"""From a result or an error to a status, header fields and bytes.

Every response has `X-Request-ID` and headers against content sniffing, framing and referrer leaks. A JSON response is
never cached. An error is always `{error, code, request_id}` (docs/errors.md).
"""

from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.model.people import callers
from postroad.web import routing

Fields = list[tuple[bytes, bytes]]
EncodedResponse = tuple[int, Fields, bytes]

_EVERYWHERE: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_JSON: Final = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    *_EVERYWHERE,
)
# No other response is to be cached, executed or framed, unless its handler says so.
_OTHER: Final = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}
_WITHOUT_CONTENT: Final = (204, 304)

# RFC 9110 section 11.6.1: a 401 names the route's authentication schemes.
BASIC: Final = (b"www-authenticate", b'Basic realm="postroad", charset="UTF-8"')
BEARER: Final = (b"www-authenticate", b'Bearer realm="postroad"')


class Error(msgspec.Struct, frozen=True):
    """The error object."""

    error: str
    code: str
    request_id: str


_encoder = msgspec.json.Encoder()


def check(route: routing.Route[Any]) -> None:
    """At start-up, refuse a route whose JSON responses lack the request id."""
    for status, kind in route.responses.items():
        if kind is None or kind is bytes:
            continue
        names = kind.__struct_encode_fields__ if isinstance(kind, type(msgspec.Struct)) else ()
        if "request_id" not in names:
            raise TypeError(f"{route.method} {route.path}: the {status} response needs a Struct with request_id")


def challenges(permission: callers.Permission | None) -> tuple[tuple[bytes, bytes], ...]:
    """The `WWW-Authenticate` values of a route."""
    return (BASIC, BEARER) if permission in callers.PASSWORD_PERMISSIONS else (BEARER,)


def success(answer: routing.Response, *, request_id: str) -> EncodedResponse:
    """The response of a handler. A streamed response has no content yet, and possibly no length."""
    body = answer.body
    content = body if isinstance(body, bytes) else _encoder.encode(body) if isinstance(body, msgspec.Struct) else b""
    fields: Fields = [(b"x-request-id", (answer.request_id or request_id).encode())]
    if answer.headers:
        fields.extend((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers)
    if body is not None and answer.content_type == routing.JSON:
        fields.extend(_JSON)
    else:
        fields.extend(_other_fields(answer))
    length = answer.length if isinstance(body, AsyncGenerator) else len(content)
    if answer.status not in _WITHOUT_CONTENT and length is not None:
        fields.append((b"content-length", b"%d" % length))
    return answer.status, fields, content


def _other_fields(answer: routing.Response) -> Fields:
    given = {name.lower().encode("latin-1") for name, _ in answer.headers}
    fields: Fields = [*_EVERYWHERE, *((name, value) for name, value in _OTHER.items() if name not in given)]
    if answer.body is not None:
        fields.append((b"content-type", answer.content_type.encode()))
    return fields


def refusal(
    error: errors.PostroadError,
    *,
    request_id: str,
    challenge: tuple[tuple[bytes, bytes], ...] = (BEARER,),
    shape: tuple[int, msgspec.Struct] | None = None,
) -> EncodedResponse:
    """The response to a refused request. `shape` is another status and body than those of our own API."""
    status, body = shape or (error.status, Error(error=error.message, code=error.code, request_id=request_id))
    content = _encoder.encode(body)
    fields: Fields = [*_JSON, (b"content-length", b"%d" % len(content)), (b"x-request-id", request_id.encode())]
    fields.extend(refusal_fields(error))
    if isinstance(error, errors.Unauthorized):
        fields.extend(challenge)
    return status, fields, content


def refusal_fields(error: errors.PostroadError) -> Fields:
    """The header fields of an error, however it is rendered."""
    fields: Fields = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in error.headers]
    if error.retry_after is not None:
        fields.append((b"retry-after", b"%d" % error.retry_after))
    if isinstance(error, errors.MethodNotAllowed):
        fields.append((b"allow", ", ".join(error.allowed).encode()))
    return fields
