"""A customer who goes on working: sends a message ten times a second and opens a page five times a second.

It sends when the time has come, whatever became of the message before, each over a connection of its own. All clocks
of a message run from the moment when it was due: until the 202, until the mail host has it, until the endpoint has its
event. What is refused, or not answered, counts as refused.
"""

import asyncio
import base64
import collections
import time
import typing

from benchmarks import message, report
from benchmarks.attacks import outside, scene

SENDS_PER_SECOND = 10
PAGES_PER_SECOND = 5
ANSWER_SECONDS = 15.0
# After the last request, until what was accepted has arrived and is reported.
ARRIVAL_SECONDS = 10.0
POLL_SECONDS = 0.02
MEASURES = ("send", "delivery", "webhook", "page")
# Responsibility is taken over HTTP and over SMTP; the greeting of a listener is only a greeting.
ACCEPTED, WELCOME = {"202", "250"}, {"202", "250", "220"}
SHOWN = "200"
PAGE = "/messages"
UNANSWERED, DISCONNECTED = "unanswered", "disconnected"
SENDER = f"orders@{scene.VICTIM_DOMAIN}"

Listener = typing.Literal["http", "submission", "inbound"]


class Figure(typing.NamedTuple):
    """Milliseconds of one measure: median and the 95th percentile."""

    median: float
    p95: float


class Figures(typing.NamedTuple):
    """How a customer fared: each measure that there is, and how often something was refused or is missing."""

    by_measure: dict[str, Figure]
    refused: dict[str, int]


class Victim:
    """The customer, at a service that runs."""

    def __init__(self, stage: scene.Scene, around: outside.Outside, *, cookies: str, listener: Listener) -> None:
        self._stage = stage
        self._around = around
        # Sends the message with a serial; returns a status or a reply code.
        self.send: typing.Callable[[str], typing.Coroutine[None, None, str]]
        self.send = {"http": self._post, "submission": self._submit, "inbound": self._greet}[listener]
        content = message.as_json("ascii", sender=SENDER)
        head = (
            f"POST /emails HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {stage.victim.key}\r\n"
            f"Content-Type: application/json\r\nIdempotency-Key: victim-{message.SERIAL}\r\nConnection: close\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        self._message = head.encode() + content
        self._page = (
            f"GET {PAGE} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookies}\r\nConnection: close\r\n\r\n".encode()
        )
        self._mime = message.as_mime("ascii").replace(message.SENDER.encode(), SENDER.encode()).replace(b"\n", b"\r\n")

    async def work(self, seconds: float) -> Figures:
        """Work for so long."""
        samples: dict[str, list[float]] = {name: [] for name in MEASURES}
        refused: collections.Counter[str] = collections.Counter()
        sent: dict[str, float] = {}

        async def send(due: float) -> None:
            serial = self._around.new_serial()
            status = await _within_time(self.send(serial))
            samples["send"].append(time.perf_counter() - due)
            if status in ACCEPTED:
                sent[outside.recipient(serial)] = due
            elif status not in WELCOME:
                refused[f"send {status}"] += 1

        async def look(due: float) -> None:
            status = await _within_time(self.look())
            samples["page"].append(time.perf_counter() - due)
            if status != SHOWN:
                refused[f"page {status}"] += 1

        await asyncio.gather(
            _at_rate(send, SENDS_PER_SECOND, seconds=seconds), _at_rate(look, PAGES_PER_SECOND, seconds=seconds)
        )
        arrivals = {"delivery": self._around.mail.arrived, "webhook": self._around.reported}
        for _ in range(int(ARRIVAL_SECONDS / POLL_SECONDS)):
            if all(sent.keys() <= seen.keys() for seen in arrivals.values()):
                break
            await asyncio.sleep(POLL_SECONDS)
        for name, seen in arrivals.items():
            samples[name] = [seen.get(recipient, time.perf_counter()) - due for recipient, due in sent.items()]
            if missing := sum(recipient not in seen for recipient in sent):
                refused[f"{name} missing"] = missing
        return Figures({name: _figure(values) for name, values in samples.items() if values}, dict(refused))

    async def look(self) -> str:
        """Open the page; returns its status."""
        return await self._ask(self._page)

    async def _post(self, serial: str) -> str:
        """Send over HTTP."""
        return await self._ask(self._message.replace(message.SERIAL.encode(), serial.encode()))

    async def _submit(self, serial: str) -> str:
        """Send over SMTP."""
        party = self._stage.victim
        login = base64.b64encode(f"\0{party.username}\0{party.smtp_password}".encode()).decode()
        words = ("EHLO shop.example", f"AUTH PLAIN {login}", f"MAIL FROM:<{SENDER}>")
        commands = [*words, f"RCPT TO:<{outside.recipient(serial)}>", "DATA"]
        return await _converse(self._stage.submission, [*(each.encode() for each in commands), self._mime + b"."])

    async def _greet(self, _serial: str) -> str:
        """Connect as a mail server that has a report."""
        return await _converse(self._stage.inbound, [])

    async def _ask(self, request: bytes) -> str:
        """The status of the response, over a connection of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._stage.http)
        try:
            writer.write(request)
            answer = await reader.read()
        finally:
            writer.close()
        return answer[9:12].decode() or DISCONNECTED


async def _converse(port: int, lines: typing.Sequence[bytes]) -> str:
    """Say these lines one after the other; the first reply that is no success, or else the last one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        code = await _reply(reader)
        for line in lines:
            if code[:1] not in {"2", "3"}:
                break
            writer.write(line + b"\r\n")
            code = await _reply(reader)
        writer.write(b"QUIT\r\n")
    finally:
        writer.close()
    return code


async def _reply(reader: asyncio.StreamReader) -> str:
    while (line := await reader.readline())[3:4] == b"-":
        pass
    return line[:3].decode() or DISCONNECTED


async def _within_time(asking: typing.Coroutine[None, None, str]) -> str:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await asking
    except TimeoutError:
        return UNANSWERED
    except OSError:
        return DISCONNECTED


async def _at_rate(
    act: typing.Callable[[float], typing.Coroutine[None, None, None]], rate: float, *, seconds: float
) -> None:
    """Act so often, without waiting for what was begun before; returns when all of it has ended."""
    due = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(int(rate * seconds)):
            group.create_task(act(due))
            due += 1 / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))


def _figure(seconds: typing.Sequence[float]) -> Figure:
    milliseconds = [1000 * each for each in seconds]
    if len(milliseconds) == 1:
        return Figure(milliseconds[0], milliseconds[0])
    return Figure(report.percentile(milliseconds, 50), report.percentile(milliseconds, 95))
