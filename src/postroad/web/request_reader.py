"""From request bytes to typed values: body, `Idempotency-Key`, query string; large bodies wait for a slot."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import msgspec
from msgspec import inspect

from postroad import errors
from postroad.concurrency import fairness
from postroad.model.mail import limits
from postroad.protocol.text import http_values, strict_json
from postroad.web import routing, validation_errors

# The next part of a body, and whether there is more.
Receive = Callable[[], Awaitable[tuple[bytes, bool]]]

# Smaller bodies are too numerous to queue and too small to matter.
LARGE_OCTETS: Final = 1024 * 1024
# Messages have at most 10 MiB: 80 MiB arriving, and as much being processed. Frontend processes share these slots; each
# has at least one for processing and three for receiving: an account that is alone gets two, so that a small body
# without a declared length does not wait for a large one.
MAX_RECEIVING: Final = 8
MAX_PROCESSING: Final = 2
MIN_RECEIVING: Final = 3
MIN_PROCESSING: Final = 1
# Clients often time out after 30 s; a response before that is better.
SLOT_TIMEOUT_SECONDS: Final = 10.0
# One account gets half of the slots for receiving, the next a quarter, and so on: a client that stalls holds its slot.
RECEIVING_ALPHA: Final = 1.0
# 128 kbit/s: a message of 2 MiB takes as long at that speed as the listener allows any body.
MIN_OCTETS: Final = 160 * 1024
MIN_OCTETS_SECONDS: Final = 10.0


class LargeBodySlots:
    """Slots for large request bodies, so that memory stays bounded however many arrive at once.

    A body is held once while it arrives, which may take long, and about four times while it is parsed, checked and
    assembled, which is short. Many may therefore arrive at once, and few are processed. A request without a slot waits
    with its body unread, slowed by TCP flow control, and gets 503 after a timeout.

    A process has its share of the service's slots. They are shared fairly by `party`: the account, or the client's
    network where there is none. A body must keep arriving at a minimum speed while it has its slot; one that stalls
    gets 503, and the slot is free for the next.
    """

    def __init__(self, *, frontends: int = 1) -> None:
        receiving = max(MIN_RECEIVING, MAX_RECEIVING // frontends)
        self._receiving = fairness.FairSemaphore(receiving, alpha=RECEIVING_ALPHA)
        self._processing = fairness.FairSemaphore(max(MIN_PROCESSING, MAX_PROCESSING // frontends))

    def receiving(self, party: str) -> contextlib.AbstractAsyncContextManager[None]:
        return _slot(self._receiving, party)

    def processing(self, party: str) -> contextlib.AbstractAsyncContextManager[None]:
        return _slot(self._processing, party)


def at_minimum_speed(receive: Receive) -> Receive:
    """The same, for a body that has a slot: it raises TemporaryFailure when too little arrives in time."""
    clock = asyncio.get_running_loop().time
    received, deadline = 0, clock() + MIN_OCTETS_SECONDS

    async def receive_in_time() -> tuple[bytes, bool]:
        nonlocal received, deadline
        try:
            async with asyncio.timeout_at(deadline):
                part, has_more = await receive()
        except TimeoutError:
            msg = "the body of the request did not arrive in time; retry with the same key"
            stalled = errors.TemporaryFailure(msg, retry_after=1)
            stalled.headers = (("Connection", "close"),)
            raise stalled from None
        received += len(part)
        if received >= MIN_OCTETS:
            received, deadline = 0, clock() + MIN_OCTETS_SECONDS
        return part, has_more

    return receive_in_time


@contextlib.asynccontextmanager
async def _slot(slots: fairness.FairSemaphore, party: str) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as held:
        try:
            await held.enter_async_context(slots.hold(party, timeout=SLOT_TIMEOUT_SECONDS))
        except TimeoutError:
            msg = "too many large requests at the same time; nothing was accepted; retry with the same key"
            raise errors.TemporaryFailure(msg, retry_after=1) from None
        yield


# No documented filter needs a longer query string; the listener bounds the whole request target.
MAX_QUERY_PARAMETERS: Final = 32
# More digits than any documented number has, few enough to parse cheaply.
MAX_NUMBER_DIGITS: Final = 18
# Decoding more than this could delay others on the event loop, unless it is simple.
MAX_INLINE_OCTETS: Final = 64 * 1024
# More than any of our forms has.
MAX_FORM_FIELDS: Final = 128


class Reader:
    def __init__(self, route: routing.Route[Any]) -> None:
        self._route = route
        self._type = route.body_type.encode()
        self._is_form = route.body_type == routing.FORM

    # Computed with the first request that needs it: most routes of a process never get one.
    @functools.cached_property
    def _parameters(self) -> dict[str, type]:
        return _parameters(self._route.query)

    @functools.cached_property
    def _families(self) -> list[str]:
        return [name for name in self._parameters if name.endswith("*")]

    @functools.cached_property
    def _fields(self) -> dict[str, type]:
        return _parameters(self._route.body)

    def check_size(self, headers: routing.Headers) -> int:
        """Refuse a body whose declared length is too large before reading it; return the maximum it can have."""
        declared = headers.get(b"content-length")
        if declared is None:
            return self._route.body_limit
        if not declared.isdigit():
            raise errors.InvalidRequest("Content-Length: must be a number of bytes")
        size = int(declared[:MAX_NUMBER_DIGITS])
        if size > self._route.body_limit:
            raise self._too_large()
        return size

    async def receive(self, receive: Receive) -> bytes:
        """The whole body. A stream that exceeds the limit is refused there."""
        body, has_more = await receive()
        if has_more:
            collected = bytearray(body)
            while has_more:
                if len(collected) > self._route.body_limit:
                    raise self._too_large()
                part, has_more = await receive()
                collected += part
            body = bytes(collected)
        if len(body) > self._route.body_limit:
            raise self._too_large()
        return body

    def check_type(self, headers: routing.Headers, body: bytes) -> None:
        """Check that a body has the route's content type and is not compressed."""
        if not body and not self._route.body_required:
            return
        content_type = headers.get(b"content-type")
        if content_type != self._type and (content_type or b"").partition(b";")[0].strip().lower() != self._type:
            raise errors.InvalidRequest(f"Content-Type: must be {self._route.body_type}")
        encoding = headers.get(b"content-encoding")
        if encoding is not None and encoding.strip().lower() != b"identity":
            raise errors.InvalidRequest("Content-Encoding: send the body uncompressed")

    def idempotency_key(self, headers: routing.Headers) -> str:
        """The `Idempotency-Key`: 1 to 255 characters of the client's choice; empty where it is absent and optional."""
        value = headers.get(b"idempotency-key")
        if value is None and not self._route.key_required:
            return ""
        if not value:
            msg = "Idempotency-Key: this header is required; send a new value for each message"
            raise errors.InvalidIdempotencyKey(msg)
        try:
            key = value.decode()
        except UnicodeDecodeError:
            key = value.decode("latin-1")
        if len(key) > limits.IDEMPOTENCY_KEY_CHARACTERS:
            msg = f"Idempotency-Key: at most {limits.IDEMPOTENCY_KEY_CHARACTERS} characters"
            raise errors.InvalidIdempotencyKey(msg)
        return key

    def read_small(self, headers: routing.Headers, raw: bytes) -> tuple[str, Any]:
        """The key and the body of a request whose body is quick to decode."""
        if len(raw) > self._route.body_limit:  # without a declared length
            raise self._too_large()
        self.check_type(headers, raw)
        key = self.idempotency_key(headers) if self._route.idempotent else ""
        return key, self.decode(raw)

    async def decode_async(self, body: bytes, *, threads: fairness.FairThreads, party: str) -> Any:  # noqa: ANN401 - the route's own Struct
        if len(body) <= MAX_INLINE_OCTETS:
            return self.decode(body)
        # A thread costs more than decoding simple input, and keeps memory that only it reuses.
        if self._route.body is bytes or self._is_form:
            return await threads.run(party, functools.partial(self.decode, body))
        plain = strict_json.read_plain(body)
        if plain is None:
            return await threads.run(party, functools.partial(self._decode_other, body))
        return convert(plain, self._route.body, root="body")

    def decode(self, body: bytes) -> Any:  # noqa: ANN401 - the route's own Struct
        """The route's Struct. A body that is neither JSON nor a form is left to the handler."""
        if self._route.body is bytes:
            return body
        if self._is_form:
            return convert(self._read_form(body, self._fields), self._route.body, root="form")
        raw = body if body or self._route.body_required else b"{}"
        plain = strict_json.read_plain(raw)
        return self._decode_other(raw) if plain is None else convert(plain, self._route.body, root="body")

    def _decode_other(self, raw: bytes) -> Any:  # noqa: ANN401 - the route's own Struct
        try:
            document = strict_json.read_other(raw)
        except strict_json.JsonError as problem:
            raise errors.InvalidJson(f"body: {problem}") from None
        return convert(document, self._route.body, root="body")

    def read_query(self, text: bytes) -> Any:  # noqa: ANN401 - the route's own Struct
        """The route's query Struct; a route without one ignores the query string."""
        try:
            return self._read_strict_query(text)
        except errors.InvalidRequest:
            if self._route.query is None or not self._route.ignores_bad_query:
                raise
            return self._route.query()

    def _read_strict_query(self, text: bytes) -> Any:  # noqa: ANN401 - the route's own Struct
        values: dict[str, object] = {}
        for given, text_value in _pairs(text, limit=MAX_QUERY_PARAMETERS, root="query"):
            name, value = self._family(given, text_value)
            if name not in self._parameters:
                if self._route.ignores_bad_query:
                    continue
                raise errors.InvalidRequest(validation_errors.unknown(name, self._parameters, what="parameter"))
            if name in values:
                raise errors.InvalidRequest(f"{name}: sent more than once; send it once")
            values[name] = _typed(name, value, wanted=self._parameters[name])
        return convert(values, self._route.query, root="query")

    def _family(self, name: str, value: str) -> tuple[str, str]:
        """A parameter `order_*` stands for all names that begin so: `order_id=7` is its value `id:7`."""
        for family in self._families:
            if name not in self._parameters and name.startswith(family[:-1]):
                return family, f"{name.removeprefix(family[:-1])}:{value}"
        return name, value

    def _read_form(self, body: bytes, fields: dict[str, type]) -> dict[str, object]:
        """The fields of a form. Browsers send empty fields; they count as absent. A repeated field is a list."""
        values: dict[str, object] = {}
        for name, value in _pairs(body, limit=MAX_FORM_FIELDS, root="form"):
            if name not in fields:
                raise errors.InvalidRequest(validation_errors.unknown(name, fields, what="field"))
            if not value:
                continue
            if fields[name] is list:
                several = values.setdefault(name, [])
                if isinstance(several, list):
                    several.append(value)
            elif name in values:
                raise errors.InvalidRequest(f"{name}: sent more than once; send it once")
            else:
                # Browsers end lines with CRLF; text uses LF.
                values[name] = _typed(name, value.replace("\r\n", "\n"), wanted=fields[name])
        return values

    def _too_large(self) -> errors.PayloadTooLarge:
        return errors.PayloadTooLarge(f"body: at most {self._route.body_limit} bytes")


# Bounded: only our own types are looked up, a few hundred.
_type_info = functools.cache(inspect.type_info)


def convert(document: object, kind: Any, *, root: str) -> Any:  # noqa: ANN401
    """The document as this type. Raises InvalidRequest, which names the place by `root` and below it."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError:
        problem = validation_errors.first_problem(document, _type_info(kind), root=root)
    try:
        if problem is None:
            return msgspec.convert(validation_errors.whole_numbers(document), kind)
    except msgspec.ValidationError:
        problem = f"{root}: {validation_errors.GENERIC_PROBLEM}"
    raise errors.InvalidRequest(problem)


def _pairs(text: bytes, *, limit: int, root: str) -> list[tuple[str, str]]:
    try:
        return http_values.read_form(text, limit=limit)
    except http_values.FormError:
        raise errors.InvalidRequest(f"{root}: at most {limit} parameters, percent-encoded as UTF-8") from None


def _parameters(kind: type | None) -> dict[str, type]:
    info = _type_info(kind) if kind is not None else None
    return {field.encode_name: _scalar(field) for field in info.fields} if isinstance(info, inspect.StructType) else {}


def _scalar(field: inspect.Field) -> type:
    """The type to which a parameter's text is converted; everything except booleans, integers and lists stays text."""
    kinds = validation_errors.choices(field.type)
    if any(
        isinstance(choice, inspect.LiteralType) and int in validation_errors.literal_types(choice) for choice in kinds
    ):
        return int
    for kind, scalar in ((inspect.BoolType, bool), (inspect.IntType, int), (inspect.VarTupleType, list)):
        if any(isinstance(choice, kind) for choice in kinds):
            return scalar
    return str


def _typed(name: str, value: str, *, wanted: type) -> object:
    if wanted is bool:
        if value not in ("true", "false"):
            raise errors.InvalidRequest(f"{name}: expected true or false")
        return value == "true"
    if wanted is int:
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_NUMBER_DIGITS):
            raise errors.InvalidRequest(f"{name}: expected an integer")
        return int(value)
    return value
