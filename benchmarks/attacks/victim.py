"""A customer who goes on working: sends a message ten times a second and opens a page three times a second.

It sends when the time has come, whatever became of the message before, each over a connection of its own. All clocks
of a message run from the moment when it was due: until the 202, until the mail host has it, until the endpoint has its
event. What is refused, or not answered, counts as refused.
"""

import asyncio
import collections
import time
import typing

from benchmarks import message, report
from benchmarks.attacks import outside, scene

SENDS_PER_SECOND = 10
PAGES_PER_SECOND = 3
ANSWER_SECONDS = 15.0
# After the last request, until what was accepted has arrived and is reported.
ARRIVAL_SECONDS = 10.0
POLL_SECONDS = 0.02
MEASURES = ("send", "delivery", "webhook", "page")
ACCEPTED, SHOWN = "202", "200"
PAGE = "/messages"


class Figure(typing.NamedTuple):
    """Milliseconds of one measure: median and the 95th percentile."""

    median: float
    p95: float


class Figures(typing.NamedTuple):
    """How a customer fared: each measure, and how often something was refused or is missing, by what it was."""

    by_measure: dict[str, Figure]
    refused: dict[str, int]


class Victim:
    """The customer, at a service that runs."""

    def __init__(self, stage: scene.Scene, around: outside.Outside, *, cookies: str) -> None:
        self._port = stage.http
        self._key = stage.victim.key
        self._around = around
        self._cookies = cookies

    async def work(self, seconds: float) -> Figures:
        """Work for so long."""
        samples: dict[str, list[float]] = {name: [] for name in MEASURES}
        refused: collections.Counter[str] = collections.Counter()
        sent: dict[str, float] = {}

        async def send(due: float) -> None:
            serial = self._around.new_serial()
            status = await self._ask(self._message(serial))
            samples["send"].append(time.perf_counter() - due)
            if status == ACCEPTED:
                sent[outside.recipient(serial)] = due
            else:
                refused[f"send {status}"] += 1

        async def look(due: float) -> None:
            status = await self._ask(self._page())
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
        return Figures({name: _figure(samples[name]) for name in MEASURES}, dict(refused))

    async def _ask(self, request: bytes) -> str:
        """The status of the response, over a connection of its own."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    writer.write(request)
                    answer = await reader.read()
                finally:
                    writer.close()
        except TimeoutError:
            return "unanswered"
        except OSError:
            return "disconnected"
        return answer[9:12].decode() or "disconnected"

    def _message(self, serial: str) -> bytes:
        body = message.as_json("ascii", sender=f"orders@{scene.VICTIM_DOMAIN}")
        return (
            f"POST /emails HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nIdempotency-Key: victim-{serial}\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body.replace(message.SERIAL.encode(), serial.encode())

    def _page(self) -> bytes:
        return (
            f"GET {PAGE} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nCookie: {self._cookies}\r\n"
            "Connection: close\r\n\r\n"
        ).encode()


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
    milliseconds = [1000 * each for each in seconds] or [0.0]
    milliseconds *= 2 if len(milliseconds) == 1 else 1
    return Figure(report.percentile(milliseconds, 50), report.percentile(milliseconds, 95))
