"""An HTTP application as one callable: route, check, read, call the handler, respond, write one log line.

A request takes one straight path. It is a coroutine, and waits only where it has to: for a caller or a body that is not
there yet, for its turn in a flood, and for its handler.

Every response has an `X-Request-ID` generated here; one sent by a client is ignored. Checks run in the order of
docs/api.md: authentication, then the body. An exception that is not a `PostroadError` is a bug: it is logged with the
request id, and the client gets only `internal_error`. The log line contains the route's pattern and never a path, a
query, a header or a body, so no secret can reach it.
"""

import asyncio
import contextlib
import math
import time
import types
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from postroad import errors
from postroad.concurrency import fairness
from postroad.model.mail import send_request
from postroad.model.people import callers, login_rules
from postroad.model.units import identifiers
from postroad.network.http import http_server
from postroad.telemetry import logs, metrics
from postroad.web import request_reader, reverse_proxies, routing

ContextT_contra = TypeVar("ContextT_contra", contravariant=True)

RenderError = Callable[[errors.PostroadError, routing.RefusedRequest], Awaitable[routing.EncodedResponse | None]]
# RFC 9110 section 9.2.1: safe methods change nothing, so they need no actor.
_SAFE: Final = frozenset({"GET", "HEAD"})
_READING: Final = frozenset({callers.Permission.READ, callers.Permission.VIEW, callers.Permission.CONTENT})
# The types of a body that is not streamed.
_WHOLE: Final = (bytes, msgspec.Struct, types.NoneType)
OK: Final = 200
ACCEPTED: Final = 202
TOO_MANY: Final = "too many requests at once; wait for the responses to those before"


class Authenticate(Protocol[ContextT_contra]):
    """The caller if it is cached, otherwise an awaitable of it."""

    def __call__(
        self, context: ContextT_contra, headers: routing.Headers, /, *, client_address: str
    ) -> callers.Caller | Awaitable[callers.Caller]: ...


class Require(Protocol):
    """Refuses a caller without a permission, or whose API key does not have the scope or is used elsewhere."""

    def __call__(
        self,
        who: callers.Caller,
        permission: callers.Permission,
        /,
        *,
        scope: callers.Scope | None,
        client_address: str,
    ) -> None: ...


class BindActor(Protocol[routing.ContextT]):
    def __call__(
        self, context: routing.ContextT, who: callers.Caller, /, *, request_id: str, client_address: str
    ) -> routing.ContextT: ...


class Confirmation(msgspec.Struct, Generic[routing.ContextT], frozen=True):
    """Sensitive routes, as `METHOD /path`; `refuse` raises unless the caller has proved lately who they are."""

    routes: Collection[str]
    refuse: Callable[[routing.ContextT, callers.Caller], None]


class _Endpoint(msgspec.Struct, Generic[routing.ContextT], frozen=True):
    """A route with what is prepared for it at start-up."""

    route: routing.Route[routing.ContextT]
    reader: request_reader.Reader
    challenge: tuple[tuple[bytes, bytes], ...]
    label: str
    # What the delays count before the work; 0 for messages, which never wait there.
    units: int
    scope: callers.Scope | None
    require: Require
    refuse_unconfirmed: Callable[[routing.ContextT, callers.Caller], None] | None
    # Whether a success changes something besides accepting a message.
    is_change: bool


class _Exchange(Generic[routing.ContextT]):
    __slots__ = (
        "account_id",
        "body",
        "body_size",
        "body_slots",
        "caller",
        "client_address",
        "endpoint",
        "error_code",
        "error_text",
        "headers",
        "id",
        "is_change",
        "is_counted",
        "request",
        "rest",
        "started",
    )

    def __init__(self, request_id: str, request: http_server.Request | None) -> None:
        self.id = request_id
        # None for bytes that never became a request; the address is then unknown.
        self.request = request
        self.client_address: str | None = None
        self.headers: routing.Headers | None = None
        self.started = time.perf_counter()
        self.endpoint: _Endpoint[routing.ContextT] | None = None
        self.account_id: str | None = None
        self.caller: callers.Caller | None = None
        # As received; a long one is not kept.
        self.body = b""
        self.body_size = 0
        # Not the error itself: its traceback has frames that have this exchange, and such a circle stays in memory with
        # the body until the garbage collector comes.
        self.error_code = self.error_text = ""
        self.is_change = False
        # Accepted, or counted in the delays before the work: the response does not wait.
        self.is_counted = False
        # The remaining parts of a streamed response.
        self.rest: routing.Parts | None = None
        # Slots that a large body holds until its response is ready.
        self.body_slots: contextlib.AsyncExitStack | None = None


class Application(Generic[routing.ContextT]):
    """Serves a route table. `context` is passed to `authenticate` and to the handlers, and is not used otherwise.

    `bind_actor` returns the context for changes by a user or a key. `render_error` may render an error differently
    from the error object; None means that it declines. `proxies` determine the client address. `large_body_slots`
    bounds the memory of large bodies, and `threads` decode those that could block the event loop. `confirmation` says
    which routes are sensitive. `delays` are those of responses to a flood. `note` gets requests of callers that were
    refused or failed, and changes by programs.
    """

    def __init__(
        self,
        context: routing.ContextT,
        routes: Iterable[routing.Route[routing.ContextT]],
        *,
        authenticate: Authenticate[routing.ContextT],
        require: Require,
        bind_actor: BindActor[routing.ContextT] | None = None,
        confirmation: Confirmation[routing.ContextT] | None = None,
        render_error: RenderError | None = None,
        proxies: reverse_proxies.Proxies | None = None,
        clock: Callable[[], int],
        entropy: Callable[[int], bytes],
        log: logs.Logger,
        counted: metrics.Metrics | None = None,
        large_body_slots: request_reader.LargeBodySlots | None = None,
        threads: fairness.FairThreads | None = None,
        delays: fairness.ResponseDelays | None = None,
        note: Callable[[callers.FinishedRequest], None] | None = None,
    ) -> None:
        self._context = context
        self._authenticate = authenticate
        self._bind_actor = bind_actor
        self._render_error = render_error
        self._proxies = proxies
        self._clock = clock
        self._entropy = entropy
        self._log = log
        self._metrics = counted or metrics.Metrics()
        self._large_body_slots = large_body_slots or request_reader.LargeBodySlots()
        self._threads = threads or fairness.FairThreads(1, name="decode")
        self._delays = delays or fairness.ResponseDelays()
        self._note = note
        self._table: routing.Table[_Endpoint[routing.ContextT]] = routing.Table()
        for route in routes:
            routing.check(route)
            challenge = routing.challenges(route.permission)
            label = f"{route.method} {route.path}"
            refuse = confirmation.refuse if confirmation is not None and label in confirmation.routes else None
            endpoint = _Endpoint(
                route,
                request_reader.Reader(route),
                challenge,
                label,
                0 if route.idempotent else route.units,
                route.key_scope,
                route.require or require,
                refuse,
                not (route.method in _SAFE or route.permission in _READING or route.idempotent or route.is_poll),
            )
            self._table.add(route.method, route.path, target=endpoint)

    async def __call__(self, request: http_server.Request, *, is_counted: bool = False) -> None:
        exchange: _Exchange[routing.ContextT] = _Exchange(self._new_id(), request)
        exchange.is_counted = is_counted
        try:
            status, fields, content = await self._respond(exchange, request)
        except errors.PostroadError as error:
            # Clients see only that there is an outage; the operator needs the cause.
            if (cause := logs.cause_of(error)) is not None:
                self._log.warning("service_unavailable", request_id=exchange.id, code=error.code, cause=cause)
            status, fields, content = await self._refusal(exchange, error)
        except http_server.Disconnected:
            self._log_request(exchange, None)
            return
        except asyncio.CancelledError:
            # The grace period is over. The task ends here, but still sends a response.
            stopping = errors.ServiceUnavailable("the service is stopping", retry_after=1)
            status, fields, content = await self._refusal(exchange, stopping)
        except Exception:  # noqa: BLE001 - the last resort: any exception is logged and answered
            self._log.exception("request_failed", request_id=exchange.id, route=_pattern(exchange))
            failed = errors.InternalError("internal error; it has been logged")
            status, fields, content = await self._refusal(exchange, failed)
        finally:
            if exchange.body_slots is not None:
                await exchange.body_slots.aclose()
        if not exchange.is_counted:
            await self._delay_response(exchange, request, status)
        request.respond(status, fields, content, has_more=exchange.rest is not None)
        if exchange.rest is not None:
            await self._send_rest(exchange, exchange.rest, request)
        self._log_request(exchange, status)
        if exchange.error_code or exchange.is_change:
            self._note_request(exchange, request, status)

    def serve_part(self, request: http_server.Request) -> Coroutine[Any, Any, None]:
        """A request that is part of another one: the delays count that one."""
        return self(request, is_counted=True)

    def refuse(self, error: errors.PostroadError) -> routing.EncodedResponse:
        """The response to bytes that never became a request; called by the listener."""
        exchange: _Exchange[routing.ContextT] = _Exchange(self._new_id(), None)
        self._log_request(exchange, error.status)
        return routing.refusal(error, request_id=exchange.id)

    async def _send_rest(
        self, exchange: _Exchange[routing.ContextT], rest: routing.Parts, request: http_server.Request
    ) -> None:
        """Stream the rest of a response while the client is connected. A failed response must not look complete."""
        gone = asyncio.create_task(request.until_disconnected())
        try:
            async with contextlib.aclosing(rest):
                while request.method != "HEAD" and not gone.done() and (part := await anext(rest, b"")):
                    await request.send(part, has_more=True)
            await request.send(b"", has_more=False)
        except Exception:
            self._log.exception("response_aborted", request_id=exchange.id, route=_pattern(exchange))
            raise
        finally:
            gone.cancel()

    async def _respond(
        self, exchange: _Exchange[routing.ContextT], request: http_server.Request
    ) -> routing.EncodedResponse:
        headers = exchange.headers = routing.Headers(request.headers)
        client_address = exchange.client_address = (
            request.peer if self._proxies is None else self._proxies.client_address(request.peer, headers)
        )
        endpoint, path = self._table.find(request.method, request.raw_path)
        exchange.endpoint = endpoint
        route = endpoint.route
        who = None
        if route.permission is not None:
            known = self._authenticate(self._context, headers, client_address=client_address)
            who = known if isinstance(known, callers.Caller) else await known
            exchange.caller = who
            exchange.account_id = request.account_id = who.account_id
            self._delays.note_account(who.account_id)
        if endpoint.units and not exchange.is_counted:
            await self._wait_for_turn(exchange, endpoint, request)
        if who is not None and route.permission is not None:
            endpoint.require(who, route.permission, scope=endpoint.scope, client_address=client_address)
            if endpoint.refuse_unconfirmed is not None:
                endpoint.refuse_unconfirmed(self._context, who)
        query = endpoint.reader.read_query(request.query) if route.query is not None else None
        key, body = "", None
        if route.body is not None:
            raw = request.whole_body(most=request_reader.MAX_INLINE_OCTETS)
            if raw is None:
                key, body = await self._read_body(exchange, endpoint, request)
            else:
                exchange.body = raw
                key, body = endpoint.reader.read_small(headers, raw)
        handled = routing.Request(
            id=exchange.id,
            headers=headers,
            client_address=client_address,
            authenticated=who,
            path=path,
            query=query,
            body=body,
            idempotency_key=key,
        )
        context = self._context
        # An SMTP credential only sends, and so does a key on a route with an idempotency key.
        if who is not None and (who.user_id is not None or not (who.key is None or route.idempotent)):
            context = self._context_of(handled, route)
        answer = await route.handler(context, handled)
        status, fields, content = routing.success(answer, request_id=exchange.id)
        is_accepted = status == ACCEPTED or answer.is_accepted
        # An accepted message has a rate of its own.
        if is_accepted and send_request.REPLAYED not in answer.headers:
            exchange.is_counted = True
        exchange.is_change = endpoint.is_change and not is_accepted and who is not None and who.user_id is None
        if not isinstance(answer.body, _WHOLE):
            # An error before the first part can still be answered.
            content, exchange.rest = await anext(answer.body, b""), answer.body
        return status, fields, content

    async def _read_body(
        self,
        exchange: _Exchange[routing.ContextT],
        endpoint: _Endpoint[routing.ContextT],
        request: http_server.Request,
    ) -> tuple[str, Any]:
        """The key and the body of a request whose body is large, or has not arrived yet."""
        headers, reader = exchange.headers or routing.Headers([]), endpoint.reader
        party = exchange.account_id or login_rules.network_of(exchange.client_address or "")
        receive: request_reader.Receive = request.receive
        # Before the body: it may be refused for its declared length.
        if reader.check_size(headers) > request_reader.LARGE_OCTETS:
            exchange.body_slots = contextlib.AsyncExitStack()
            await exchange.body_slots.enter_async_context(self._large_body_slots.receiving(party))
            receive = request_reader.at_minimum_speed(receive)
        raw = await reader.receive(receive)
        if len(raw) <= request_reader.MAX_INLINE_OCTETS:
            exchange.body = raw
        exchange.body_size = len(raw)
        reader.check_type(headers, raw)
        key = reader.idempotency_key(headers) if endpoint.route.idempotent else ""
        if len(raw) > request_reader.LARGE_OCTETS and exchange.body_slots is not None:
            await exchange.body_slots.enter_async_context(self._large_body_slots.processing(party))
        elif exchange.body_slots is not None:
            await exchange.body_slots.aclose()  # no declared length, and small
        return key, await reader.decode_async(raw, threads=self._threads, party=party)

    def _context_of(self, request: routing.Request, route: routing.Route[routing.ContextT]) -> routing.ContextT:
        who = request.authenticated
        if self._bind_actor is None or who is None or route.method in _SAFE:
            return self._context
        return self._bind_actor(self._context, who, request_id=request.id, client_address=request.client_address)

    async def _refusal(
        self, exchange: _Exchange[routing.ContextT], error: errors.PostroadError
    ) -> routing.EncodedResponse:
        exchange.error_code, exchange.error_text = error.code, error.message
        if self._render_error is not None and exchange.headers is not None and exchange.request is not None:
            request = exchange.request
            refused = routing.RefusedRequest(
                exchange.id,
                request.method,
                request.raw_path,
                request.query,
                exchange.headers,
                has_caller=exchange.caller is not None,
            )
            rendered = await self._render_error(error, refused)
            if rendered is not None:
                return rendered
        challenge = exchange.endpoint.challenge if exchange.endpoint else (routing.BEARER,)
        return routing.refusal(error, request_id=exchange.id, challenge=challenge)

    async def _wait_for_turn(
        self,
        exchange: _Exchange[routing.ContextT],
        endpoint: _Endpoint[routing.ContextT],
        request: http_server.Request,
    ) -> None:
        """Wait before the work: a flood must not take the event loop from others, also when it hangs up."""
        pace = fairness.Pace.PROBES if endpoint.route.is_probe else endpoint.route.pace
        seconds = self._seconds(exchange, pace, units=endpoint.units)
        # Strangers are served then: people of many accounts may have one address in common. So is whoever reads the
        # state of a message: its route never answers 429.
        is_managing = (
            endpoint.route.permission is not None and endpoint.route.permission not in callers.PASSWORD_PERMISSIONS
        )
        if seconds >= fairness.MAX_DELAY_SECONDS and is_managing:
            raise errors.RateLimited(TOO_MANY, retry_after=math.ceil(seconds))
        exchange.is_counted = True
        if seconds:
            await _sleep(exchange, request, seconds)
            # Where there is a body, reading it finds out.
            if endpoint.route.body is None and request.whole_body() is None:
                await request.receive()
        if endpoint.units >= fairness.PAGE_UNITS and exchange.account_id is not None:
            await self._delays.take_turn(exchange.account_id)

    async def _delay_response(
        self, exchange: _Exchange[routing.ContextT], request: http_server.Request, status: int
    ) -> None:
        """Wait before the response to what took no turn: a message not accepted, a replay, no caller, no route."""
        if exchange.endpoint is not None and exchange.endpoint.route.is_probe:
            return
        is_refused = status >= errors.InvalidRequest.status
        pace = fairness.Pace.REFUSALS if is_refused else fairness.Pace.REQUESTS
        if seconds := self._seconds(exchange, pace):
            await _sleep(exchange, request, seconds)

    def _seconds(self, exchange: _Exchange[routing.ContextT], pace: fairness.Pace, *, units: int = 1) -> float:
        if exchange.account_id is not None:
            return self._delays.of_account(exchange.account_id, pace, units=units)
        networks = login_rules.networks_around(exchange.client_address or "")
        return self._delays.of_stranger(networks, pace, units=units)

    def _new_id(self) -> str:
        entropy = self._entropy(identifiers.ENTROPY_BYTES)
        return identifiers.make(identifiers.REQUEST, now=self._clock(), entropy=entropy)

    def _note_request(self, exchange: _Exchange[routing.ContextT], request: http_server.Request, status: int) -> None:
        if self._note is None or exchange.caller is None:
            return
        self._note(
            callers.FinishedRequest(
                id=exchange.id,
                caller=exchange.caller,
                method=request.method,
                path=request.raw_path,
                status=status,
                code=exchange.error_code,
                error=exchange.error_text,
                client_address=exchange.client_address or "",
                body_size=exchange.body_size or len(exchange.body),
                body=exchange.body,
            )
        )

    def _log_request(self, exchange: _Exchange[routing.ContextT], status: int | None) -> None:
        seconds = time.perf_counter() - exchange.started
        # Never the path or method as sent: a client could create any number of label values.
        label = exchange.endpoint.label if exchange.endpoint else metrics.NONE
        is_quiet = exchange.endpoint is not None and exchange.endpoint.route.is_probe and status == OK
        self._metrics.requests.add(label, metrics.NONE if status is None else str(status))
        self._metrics.request_seconds.observe(seconds, label)
        address = {} if exchange.client_address is None else {"client_address": exchange.client_address}
        log = self._log.debug if is_quiet else self._log.info
        log(
            "request",
            request_id=exchange.id,
            method=None if exchange.request is None else exchange.request.method,
            route=None if exchange.endpoint is None else exchange.endpoint.route.path,
            status=status,
            duration_ms=round(seconds * 1000, 3),
            account_id=exchange.account_id,
            **address,
        )


def _pattern(exchange: _Exchange[Any]) -> str | None:
    return exchange.endpoint.route.path if exchange.endpoint else None


async def _sleep(exchange: _Exchange[Any], request: http_server.Request, seconds: float) -> None:
    exchange.started += seconds  # no time that the service needed
    request.is_delayed = True  # for the listener: the connection may make room
    await asyncio.sleep(seconds)
    request.is_delayed = False
