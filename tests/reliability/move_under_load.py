"""An installation that moves from SQLite to PostgreSQL while its callers go on, and who got what in the end.

    python -m tests.reliability.move_under_load --messages 100000

Callers send batches until so many messages are stored, and single messages all the time, each with a key of its own;
they repeat what is not answered, as docs/errors.md says. The mail host defers some, so that the queue is never empty.
The service is stopped, moved, started on PostgreSQL, looked at, and released. At the end each message that was answered
with 202 is stored once, delivered once and reported, and each key still gets the same bytes.
"""

import argparse
import asyncio
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx

from postroad import context
from postroad.services.accounts import credits
from postroad.services.operations import operator_jobs
from tests.postgres_server import DURABLE, PostgresServer
from tests.reliability import (
    delivery_harness,
    service_process,
    sinks,
    submission_service,
    webhook_processes,
    whole_service,
)
from tests.storage import samples

BATCH: Final = 100
SENDERS: Final = 4
PAUSE_SECONDS: Final = 0.02
# What is deferred waits for longer than a trial takes; then it is sent at once.
RETRY_SECONDS: Final = [36_000] * 3
# Accepted while delivery is held, and after it is released.
MORE: Final = 20
QUESTIONS: Final = {
    "messages": "SELECT subject, id FROM messages",
    "recipients": "SELECT email, status FROM recipients",
}


@dataclass(slots=True)
class Callers:
    """Who sends, and the answers that they got."""

    whole: whole_service.WholeService
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    # The bytes of each 202, by key.
    answers: dict[str, bytes] = field(default_factory=dict)
    subjects: dict[str, Sequence[str]] = field(default_factory=dict)
    tries: int = 0
    answered_at: float = 0.0
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def accepted(self) -> dict[str, str]:
        """The id of each message that was accepted, by its subject."""
        return {
            subject: item["id"]
            for key, answer in self.answers.items()
            for subject, item in zip(self.subjects[key], _items(answer), strict=True)
        }

    async def send(self, count: int) -> None:
        """Send a new message, or a batch of so many, until it is accepted."""
        key = f"{'batch' if count > 1 else 'single'}-{next(self._numbers)}"
        self.subjects[key] = [f"{key}-{number}" for number in range(count)]
        await self.repeat(key)

    async def repeat(self, key: str) -> None:
        """Send it, or once more, until it is answered; a repetition gets the same bytes."""
        async with asyncio.timeout(service_process.TIMEOUT_SECONDS):
            while (answer := await self._try(key)) is None:
                await asyncio.sleep(service_process.POLL_SECONDS)
        assert self.answers.setdefault(key, answer) == answer, key

    async def _try(self, key: str) -> bytes | None:
        emails = [
            {"from": submission_service.SENDER, "to": [address(subject)], "subject": subject, "text": "Hello " * 500}
            for subject in self.subjects[key]
        ]
        path, body = ("/emails/batch", {"emails": emails}) if len(emails) > 1 else ("/emails", emails[0])
        self.tries += 1
        try:
            response = await self.whole.client.post(
                f"{self.whole.service.base_url}{path}",
                json=body,
                auth=self.whole.login,
                headers={"Idempotency-Key": key},
            )
        except httpx.TransportError:
            return None
        if response.status_code == httpx.codes.ACCEPTED:
            self.answered_at = time.monotonic()
            return response.content
        assert response.json()["code"] in service_process.TRY_AGAIN, response.text
        return None

    async def work(self) -> None:
        while not self.is_over.is_set():
            await self.send(1)
            await asyncio.sleep(PAUSE_SECONDS)

    async def fill(self, messages: int) -> None:
        """Send batches until so many messages are accepted."""
        while sum(map(len, self.subjects.values())) < messages:
            await asyncio.gather(*(self.send(BATCH) for _ in range(SENDERS)))

    async def repeat_everything(self) -> None:
        keys = iter(list(self.answers))

        async def work() -> None:
            for key in keys:
                await self.repeat(key)

        await asyncio.gather(*(work() for _ in range(SENDERS)))

    async def more(self, count: int) -> None:
        """Until so many more are accepted."""
        goal = len(self.answers) + count
        await service_process.until(lambda: asyncio.sleep(0, result=len(self.answers) >= goal))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What happened, in numbers."""

    moved: int
    rows: int
    queued: int
    copy_seconds: float
    downtime_seconds: float
    while_held: int
    accepted: int
    tries: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.moved:,} messages in {self.rows:,} rows moved in {self.copy_seconds:.1f} s, "
            f"{self.moved / self.copy_seconds:,.0f} messages a second; {self.queued:,} recipients were queued.\n"
            f"No mail was accepted for {self.downtime_seconds:.1f} s; {self.while_held:,} messages were accepted while "
            "delivery was held.\n"
            f"{self.accepted:,} messages were accepted in {self.tries:,} requests, and each was stored, delivered and "
            f"reported once. All took {self.seconds / 60:.1f} minutes."
        )


def _items(answer: bytes) -> list[dict[str, str]]:
    read = json.loads(answer)
    items: list[dict[str, str]] = read.get("results", [read])
    return items


def address(subject: str) -> str:
    return f"{subject}@example.net"


def defer_some(to: Sequence[str]) -> str:
    """The mail host defers a part of all mail before the move."""
    return "451 4.3.0 later" if any(one.partition("@")[0].endswith(("3", "6", "9")) for one in to) else sinks.ACCEPTED


async def run(folder: Path, old_url: str, new_url: str, *, messages: int) -> Outcome:
    began = time.monotonic()
    async with whole_service.configured_service(folder, old_url, retry_seconds=RETRY_SECONDS) as whole:
        async with whole_service.open_context(old_url) as ctx:
            await credits.add(ctx, whole.account_id, 10 * messages, None)
        whole.sink.answer = defer_some
        await whole.service.start()
        callers = Callers(whole)
        working = [asyncio.create_task(callers.work()) for _ in range(SENDERS)]
        await callers.fill(messages)
        await callers.more(MORE)

        assert await whole.service.stop() == 0
        stopped_at = callers.answered_at
        whole.service.move(new_url)
        code, moved = await whole.service.command("move", old_url.removeprefix("sqlite:///"))
        assert code == 0
        await whole.service.start()
        began_again = len(callers.answers)
        delivered = len(whole.sink.taken)
        await callers.more(1)
        downtime = callers.answered_at - stopped_at
        await callers.more(MORE)
        while_held = len(callers.answers) - began_again
        assert len(whole.sink.taken) == delivered
        whole.sink.answer = lambda _: sinks.ACCEPTED
        assert (await whole.service.command("queue", "release"))[0] == 0
        await callers.more(MORE)
        callers.is_over.set()
        await asyncio.gather(*working)
        await callers.repeat_everything()
        async with whole_service.open_context(new_url) as ctx:
            await delivery_harness.DeliveryHarness(ctx, whole.account_id).end_leases()
        await prove(callers, new_url)
        assert await whole.service.stop() == 0
        assert whole.service.errors() == []
    return Outcome(
        moved=moved["rows"]["messages"],
        rows=sum(moved["rows"].values()),
        queued=moved["rows"]["queue"],
        copy_seconds=moved["seconds"],
        downtime_seconds=downtime,
        while_held=while_held,
        accepted=len(callers.accepted),
        tries=callers.tries,
        seconds=time.monotonic() - began,
    )


async def prove(callers: Callers, url: str) -> None:
    """When all is delivered and reported: each accepted message is there once, and nothing else is."""
    accepted, sink, receiver = callers.accepted, callers.whole.sink, callers.whole.receiver
    async with asyncio.timeout(10 * service_process.TIMEOUT_SECONDS):
        await sink.got(len(accepted))
        # To read them all takes long, so their number is looked at first.
        while len(receiver.requests) < len(accepted) or len(webhook_processes.bodies(receiver)) < len(accepted):
            await asyncio.sleep(1)
    async with whole_service.open_context(url) as ctx:
        await service_process.until(lambda: _is_queue_empty(ctx))
        assert Counter(dict(await _ask(ctx, "messages"))) == Counter(accepted)
        assert len(await _ask(ctx, "messages")) == len(accepted)
        statuses = await _ask(ctx, "recipients")
        assert Counter(map(tuple, statuses)) == Counter((address(subject), "delivered") for subject in accepted)
        assert (await operator_jobs.check_consistency(ctx)).findings == []
    assert Counter(sink.recipients) == Counter(map(address, accepted))
    reported = [json.loads(got[0])["data"]["email_id"] for got in webhook_processes.bodies(receiver).values()]
    assert Counter(reported) == Counter(accepted.values())


async def _is_queue_empty(ctx: context.Context) -> bool:
    return not await delivery_harness.DeliveryHarness(ctx, "").rows()


async def _ask(ctx: context.Context, name: str) -> list[tuple[str, str]]:
    samples.teach(ctx.store, **{name: QUESTIONS[name]})
    async with ctx.store.scanning() as tx:
        return [(str(first), str(second)) for first, second in await tx.fetch(f"test.{name}")]


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.reliability.move_under_load", description=__doc__)
    options.add_argument("--messages", type=int, default=100_000)
    messages = options.parse_args().messages
    with tempfile.TemporaryDirectory() as folder, PostgresServer(DURABLE) as server:
        url = f"sqlite:///{folder}/postroad.db"
        outcome = asyncio.run(run(Path(folder), url, server.create_database(), messages=messages))
    print(outcome)  # noqa: T201 - the result
    return 0


if __name__ == "__main__":
    sys.exit(main())
