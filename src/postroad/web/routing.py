"""Routes as data: input, responses and permission of each path; the lookup from path to route; responses as bytes.

A route table is a literal with three readers: the application, which dispatches by it, the OpenAPI document, which is
generated from it, and people. Lookup follows RFC 3986: segments are split before percent-decoding, so an encoded slash
never starts a new segment. A literal segment takes precedence over a parameter.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib import parse

import msgspec

from postroad import errors
from postroad.concurrency import fairness
from postroad.model.people import callers, login_rules

ContextT = TypeVar("ContextT")
TargetT = TypeVar("TargetT")

# Management requests are small; only a send has attachments, up to 10 MiB in base64 with escapes.
MAX_BODY_BYTES: Final = 1024 * 1024
MAX_SEND_BODY_BYTES: Final = 32 * 1024 * 1024
# The deepest documented path has five segments; a longer one is unknown without a lookup.
MAX_SEGMENTS: Final = 12
JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
Parts = AsyncGenerator[bytes, None]
UNKNOWN_PATH: Final = "no such path; see /docs for the list of endpoints"


class Headers:
    """Request header fields by lower-case name. Reading a field that was sent twice is an error."""

    __slots__ = ("_pairs", "get")

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs
        fields = dict(pairs)
        # The value of a field, or None.
        self.get: Callable[[bytes], bytes | None] = fields.get if len(fields) == len(pairs) else self._get_one

    def _get_one(self, name: bytes) -> bytes | None:
        values = self.all(name)
        if len(values) > 1:
            raise errors.InvalidRequest(f"{name.decode('latin-1').title()}: sent more than once; send it once")
        return values[0] if values else None

    def all(self, name: bytes) -> list[bytes]:
        return [value for given, value in self._pairs if given == name]

    @property
    def accepts_gzip(self) -> bool:
        """Whether the client names gzip, and with another weight than zero (RFC 9110 section 12.5.3)."""
        choices = b",".join(self.all(b"accept-encoding")).lower().replace(b" ", b"").split(b",")
        weights = dict(choice.partition(b";")[::2] for choice in choices)
        return weights.get(b"gzip", b"q=0").rstrip(b".0") != b"q="


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a handler. `body` and `query` are the route's Structs.

    For a route whose body is neither JSON nor a form, `body` is the bytes. `idempotency_key` is empty where a route
    does not require one and the client sent none.
    """

    id: str
    headers: Headers
    client_address: str
    authenticated: callers.Caller | None = None
    path: Mapping[str, str] = {}
    query: Any = None
    body: Any = None
    idempotency_key: str = ""

    @property
    def caller(self) -> callers.Caller:
        if self.authenticated is None:
            raise RuntimeError("a public route has no caller")
        return self.authenticated

    @property
    def device(self) -> str:
        return login_rules.device_name((self.headers.get(b"user-agent") or b"").decode("latin-1"))


class RefusedRequest(msgspec.Struct, frozen=True):
    request_id: str
    method: str
    path: bytes
    query: bytes
    headers: Headers
    has_caller: bool = False


class Response(msgspec.Struct, frozen=True):
    """The output of a handler: a Struct to encode (with `request_id`), raw bytes, or nothing.

    Bytes may be streamed in non-empty parts; an error after the first part cuts the connection. `length` is the total
    in octets, if known. `request_id` replaces the request's own id in the header: a replayed send has the id of the
    first request. `is_accepted` says that a message was accepted where the status, as of another service, is not 202.
    """

    status: int
    body: msgspec.Struct | bytes | Parts | None = None
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = JSON
    request_id: str | None = None
    length: int | None = None
    is_accepted: bool = False


def attachment(
    filename: str, body: bytes | Parts, *, content_type: str = "text/csv; charset=utf-8", length: int | None = None
) -> Response:
    """A file to save. The name needs no quoting: it has letters, digits and dots only."""
    disposition = ("Content-Disposition", f'attachment; filename="{filename}"')
    return Response(200, body, headers=(disposition,), content_type=content_type, length=length)


Handler = Callable[[ContextT, Request], Awaitable[Response]]
Refusals = tuple[type[errors.PostroadError], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route(Generic[ContextT]):
    """One method of one path. `permission` None means public. `scope` is what an API key needs, see `key_scope`.

    Errors that the framework raises itself (a body too large, a missing credential, …) need not be listed.
    `content_type` is that of a success; if it is not JSON, the type in `responses` is `bytes`. `body_type` is that of
    the body; if it is neither JSON nor a form, `body` is `bytes`. `body_rules` are JSON Schema rules across several
    members; `path_patterns` and `response_headers` are documentation only. A route that `ignores_bad_query` reads what
    it understands of the query string, and refuses nothing. `key_required` says whether a request to an `idempotent`
    route needs an `Idempotency-Key`. A `list` as body is an array, whose items the handler reads. Requests of a probe
    come every few seconds: successful ones are logged at debug level. `pace` and `units` say how requests count where a
    flood is delayed; those of an `idempotent` route are messages, which have a rate of their own, and those of
    a probe have a pace of their own. A poll changes nothing, whatever its method is. `require` replaces the
    application's own check of a caller.
    """

    method: str
    path: str
    handler: Handler[ContextT]
    summary: str
    tag: str
    permission: callers.Permission | None
    responses: Mapping[int, type | None]
    description: str = ""
    body: type[msgspec.Struct] | type[bytes] | type[list[Any]] | None = None
    body_type: str = JSON
    body_required: bool = True
    body_limit: int = MAX_BODY_BYTES
    body_rules: Mapping[str, Any] = field(default_factory=dict)
    query: type[msgspec.Struct] | None = None
    ignores_bad_query: bool = False
    idempotent: bool = False
    key_required: bool = True
    errors: Refusals = ()
    content_type: str = JSON
    path_patterns: Mapping[str, str] = field(default_factory=dict)
    response_headers: Mapping[str, str] = field(default_factory=dict)
    is_probe: bool = False
    is_poll: bool = False
    scope: callers.Scope | None = None
    pace: fairness.Pace = fairness.Pace.REQUESTS
    units: int = 1
    require: Callable[..., None] | None = None

    @property
    def key_scope(self) -> callers.Scope | None:
        """The scope that an API key needs; None where no key is accepted. Sending and reading are scopes themselves."""
        if self.scope is None and self.permission in callers.PASSWORD_PERMISSIONS:
            return callers.Scope(self.permission)
        return self.scope


# From a result or an error to a status, header fields and bytes.
#
# Every response has `X-Request-ID` and headers against content sniffing, framing and referrer leaks. A JSON response is
# never cached. An error is always `{error, code, request_id}` (docs/errors.md).

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
# Of a response in gzip, and of all that could be.
GZIP: Final = ("Content-Encoding", "gzip")
VARIES_BY_ENCODING: Final = ("Vary", "Accept-Encoding")

# RFC 9110 section 11.6.1: a 401 names the route's authentication schemes.
BASIC: Final = (b"www-authenticate", b'Basic realm="postroad", charset="UTF-8"')
BEARER: Final = (b"www-authenticate", b'Bearer realm="postroad"')


class Error(msgspec.Struct, frozen=True):
    """The error object."""

    error: str
    code: str
    request_id: str


_encoder = msgspec.json.Encoder()


def check(route: Route[Any]) -> None:
    """At start-up, refuse a route whose JSON responses lack the request id."""
    for status, kind in route.responses.items():
        if kind is None or kind is bytes:
            continue
        names = kind.__struct_encode_fields__ if isinstance(kind, type(msgspec.Struct)) else ()
        if "request_id" not in names:
            raise TypeError(f"{route.method} {route.path}: the {status} response needs a Struct with request_id")


def challenges(permission: callers.Permission | None) -> tuple[tuple[bytes, bytes], ...]:
    return (BASIC, BEARER) if permission in callers.PASSWORD_PERMISSIONS else (BEARER,)


def success(answer: Response, *, request_id: str) -> EncodedResponse:
    """The response of a handler. A streamed response has no content yet, and possibly no length."""
    body = answer.body
    is_streamed = False
    if isinstance(body, bytes):
        content = body
    elif isinstance(body, msgspec.Struct):
        content = _encoder.encode(body)
    else:
        content, is_streamed = b"", body is not None
    fields: Fields = [(b"x-request-id", (answer.request_id or request_id).encode())]
    for name, value in answer.headers:
        fields.append((name.lower().encode("latin-1"), value.encode("latin-1")))
    if body is not None and answer.content_type == JSON:
        fields.extend(_JSON)
    else:
        fields.extend(_other_fields(answer))
    length = answer.length if is_streamed else len(content)
    if answer.status not in _WITHOUT_CONTENT and length is not None:
        fields.append((b"content-length", b"%d" % length))
    return answer.status, fields, content


def _other_fields(answer: Response) -> Fields:
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


def parameters(path: str) -> tuple[str, ...]:
    return tuple(part[1:-1] for part in path.split("/") if part.startswith("{"))


class _Node(Generic[TargetT]):
    """A node in the tree of path segments, with a target and the parameter names for each method."""

    __slots__ = ("literals", "methods", "parameter")

    def __init__(self) -> None:
        self.literals: dict[str, _Node[TargetT]] = {}
        self.parameter: _Node[TargetT] | None = None
        self.methods: dict[str, tuple[TargetT, tuple[str, ...]]] = {}


class Table(Generic[TargetT]):
    def __init__(self) -> None:
        self._root: _Node[TargetT] = _Node()
        self._literal: dict[bytes, _Node[TargetT]] = {}

    def add(self, method: str, path: str, *, target: TargetT) -> None:
        """Add a target at a path; HEAD is served as GET (RFC 9110 section 9.3.2)."""
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        if method in node.methods:
            raise ValueError(f"{method} {path}: duplicate route")
        names = parameters(path)
        node.methods[method] = (target, names)
        if method == "GET":
            node.methods["HEAD"] = (target, names)
        if not names:
            self._literal[path.encode()] = node

    def find(self, method: str, raw_path: bytes) -> tuple[TargetT, dict[str, str]]:
        values: list[str] = []
        node = self._literal.get(raw_path) or self._walk(raw_path, values)
        found = node.methods.get(method)
        if found is None:
            allowed = tuple(sorted(node.methods))
            raise errors.MethodNotAllowed(
                f"{method} is not supported by this path; use {', '.join(allowed)}", allowed=allowed
            )
        target, names = found
        return target, dict(zip(names, values, strict=True)) if names else {}

    def _walk(self, raw_path: bytes, values: list[str]) -> _Node[TargetT]:
        node = self._root
        for segment in raw_path.decode("latin-1").split("/", MAX_SEGMENTS)[1:]:
            name = parse.unquote(segment) if "%" in segment else segment
            following = node.literals.get(name)
            if following is None and name:
                values.append(name)
                following = node.parameter
            if following is None:
                break
            node = following
        else:
            if node.methods:
                return node
        raise errors.UnknownPath(UNKNOWN_PATH)
