"""The scripted server: a real socket on loopback that plays the steps of a scenario, and keeps what it was asked."""

import asyncio
import base64
import contextlib
import email.utils
import json
import socket
import time
from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus
from typing import Any, Final

from clients.conformance import scenarios, wire

Step = dict[str, Any]

# Steps that need a port on which nobody listens.
HOLDING: Final = frozenset({"refuse_connections", "ignore_connections", scenarios.REFUSE_FOR})
# More than a queue for no callers holds.
QUEUED: Final = 4
TRICKLE_SECONDS: Final = 0.1
# A client reads 4 MiB; loopback's buffers hold a few more. One that takes all of this has no bound.
ENDLESS_BYTES: Final = 64 * 1024 * 1024
PIECE: Final = b" " * 65536
# A receipt that is complete JSON after half of the promised bytes: to believe it is to believe half an answer.
HALF: Final = b'{"id": "em_half", "status": "queued", "source": "api", "request_id": "req_half"}'


class ScriptedServer:
    """Plays steps, one for each request in the order of their arrival, over as many connections as the client likes."""

    def __init__(self) -> None:
        self.requests: list[wire.Request] = []
        self.problems: list[str] = []
        self._steps: Sequence[Step] = ()
        self._listener = wire.Listener(self._serve)
        self._held: list[socket.socket] = []
        self._opening: asyncio.Task[None] | None = None

    async def open(self, scenario: scenarios.Scenario) -> int:
        """Listen, or hold a port that refuses or ignores connections; returns the port."""
        steps = [name for step in scenario.server for name in step]
        if not HOLDING.intersection(steps):
            return await self._listener.open(scenario.host)
        held = self._hold(socket.socket())
        held.bind((scenario.host, 0))
        if scenarios.REFUSE_FOR in steps:
            (seconds,) = (step[scenarios.REFUSE_FOR] for step in scenario.server if scenarios.REFUSE_FOR in step)
            self._opening = asyncio.ensure_future(self._open_after(seconds, held))
        if "ignore_connections" in steps:
            # The backlog is full and never accepted from: the system lets further clients wait.
            held.listen(0)
            for _ in range(QUEUED):
                caller = self._hold(socket.socket())
                caller.settimeout(0)
                caller.connect_ex(held.getsockname())
        port: int = held.getsockname()[1]
        return port

    async def _open_after(self, seconds: float, held: socket.socket) -> None:
        """Listen on a port that was held, so that it refused connections until now."""
        await asyncio.sleep(seconds)
        self._held.remove(held)
        await self._listener.open_on(held)

    def _hold(self, held: socket.socket) -> socket.socket:
        self._held.append(held)
        return held

    def play(self, steps: Sequence[Step]) -> None:
        """What to do with requests from now on; steps may name the port, so they come after it."""
        self._steps = steps

    async def close(self) -> None:
        """Be gone."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self._listener.close()
        for held in self._held:
            held.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await wire.read_request(reader, writer)) is not None:
                self.requests.append(request)
                step = self._step(len(self.requests) - 1)
                if step is None:
                    self.problems.append(
                        f"request {len(self.requests)} came, {request.method} {request.path}: too many"
                    )
                    wire.reset(writer)
                    return
                if not await _play(step, request, reader, writer):
                    return
        except wire.Malformed as problem:
            self.problems.append(str(problem))

    def _step(self, number: int) -> Step | None:
        if number < len(self._steps):
            return self._steps[number]
        last = self._steps[-1] if self._steps else {}
        return last if last.get("for_ever") else None


async def _play(step: Step, request: wire.Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Do what the step says; whether the connection is good for another request."""
    await asyncio.sleep(step.get("delay", 0))
    if "status" in step:
        return await _answer(step, request, writer)
    if "drop" in step or "close" in step:
        await _break_off(step, request, writer)
    elif "trickle" in step:
        await _trickle(step["trickle"], writer)
    elif "endless" in step:
        await _send_endlessly(writer)
    elif "raw" in step:
        writer.write(step["raw"].encode())
        await reader.read()
    elif "hang" in step:
        await reader.read()
    else:
        raise ValueError(f"an unknown step: {step}")
    return False


async def _answer(step: Step, request: wire.Request, writer: asyncio.StreamWriter) -> bool:
    # Before a date is written that counts from now, and before the client can have it.
    request.answered_at = time.monotonic()
    body = _body(step)
    framing = step.get("framing", "length")
    head = _head(step["status"], {**step.get("headers", {}), **_framing(framing, step["status"], len(body))})
    writer.write(head + (_chunked(body) if framing == "chunked" else body))
    await writer.drain()
    if framing == "close" or step.get("then") == "close":
        writer.close()
        await writer.wait_closed()
        return False
    return True


def _body(step: Step) -> bytes:
    if "json" in step:
        return json.dumps(step["json"]).encode() + b" " * int(step.get("padding", 0))
    if "base64" in step:
        return base64.b64decode(step["base64"])
    return str(step.get("text", "")).encode() * int(step.get("times", 1))


def _framing(kind: str, status: int, length: int) -> dict[str, str]:
    if status == HTTPStatus.NO_CONTENT:
        return {}
    return {
        "length": {"Content-Length": str(length)},
        "chunked": {"Transfer-Encoding": "chunked"},
        "close": {"Connection": "close"},
    }[kind]


def _head(status: int, headers: dict[str, Any]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase if status in set(HTTPStatus) else 'Something'}"]
    given = headers if any(name.lower() == "content-type" for name in headers) else {"Content-Type": "application/json"}
    lines += [f"{name}: {_value(value)}" for name, value in {**given, **headers}.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def _value(value: str | dict[str, float]) -> str:
    """A header's value as it stands, or the HTTP date so many seconds from now, cut to whole seconds."""
    if isinstance(value, str):
        return value
    return email.utils.formatdate(time.time() + value["http_date_in_seconds"], usegmt=True)


def _chunked(body: bytes) -> bytes:
    """The body in two chunks, so that one has to be put together."""
    middle = len(body) // 2
    pieces = [piece for piece in (body[:middle], body[middle:]) if piece]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


async def _break_off(step: Step, request: wire.Request, writer: asyncio.StreamWriter) -> None:
    """End the connection before an answer, or in the middle of one: by a reset, or in good order."""
    (kind, where), *_ = step.items()
    if where == "within_answer":
        writer.write(_head(202, {"Content-Length": str(2 * len(HALF))}) + HALF)
    elif where == "within_chunks":
        writer.write(_head(202, {"Transfer-Encoding": "chunked"}) + b"%x\r\n%s\r\n" % (len(HALF), HALF))
    await writer.drain()
    request.answered_at = time.monotonic()
    if kind == "drop":
        wire.reset(writer)
    else:
        writer.close()
        await writer.wait_closed()


async def _trickle(where: str, writer: asyncio.StreamWriter) -> None:
    """A byte every tenth of a second, of a head or of a body, until the client has gone."""
    writer.write(b"HTTP/1.1 202 Accepted\r\nX-Slow: " if where == "head" else _head(202, {"Content-Length": "1000000"}))
    async for _ in _ticks():
        writer.write(b"x" if where == "head" else b" ")
        await writer.drain()


async def _ticks() -> AsyncIterator[None]:
    while True:
        await asyncio.sleep(TRICKLE_SECONDS)
        yield


async def _send_endlessly(writer: asyncio.StreamWriter) -> None:
    writer.write(_head(202, {"Transfer-Encoding": "chunked"}))
    with contextlib.suppress(ConnectionError):
        for _ in range(ENDLESS_BYTES // len(PIECE)):
            writer.write(b"%x\r\n%s\r\n" % (len(PIECE), PIECE))
            await writer.drain()
