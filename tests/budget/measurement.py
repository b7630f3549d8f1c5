"""Counts what a message costs on each path, alone and in a batch, with nothing configured, on SQLite.

The parts of a process run here as they do in the service: real listeners, engines and store. What is counted is the
difference between rounds that differ in nothing but the number of messages: one and none for a message alone, many and
twice as many for a message of a batch. A round begins and ends when the service rests, after one like it that filled
the caches and opened the connections. A batch comes as one: all of it is in the sockets before the service looks. The
clock stands, so that nothing becomes stale or due.

    python -m tests.budget.measurement delivery            # the counts of a path, as JSON
    python -m tests.budget.measurement delivery --batch    # the functions and statements behind them
"""

import argparse
import asyncio
import base64
import contextlib
import itertools
import os
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks import message
from postroad import context
from postroad.delivery import engine as delivery_engine
from postroad.mail.accept import transaction
from postroad.model.people import callers
from postroad.roles import composition, listeners, role
from postroad.services.people import api_keys, credentials
from postroad.services.webhooks import endpoints
from postroad.telemetry import logs
from postroad.webhooks import engine as webhook_engine
from tests import contexts, dns_server, webhook_rows
from tests.budget import counts, peers
from tests.delivery import bulk_queue, engine_harness

ROUNDS: Final = 6
MAX_ROUNDS: Final = 200
# The service rests when this number of looks in a row, this long after each other, see that nothing was called.
RESTING: Final = 3
REST_SECONDS: Final = 0.01
# Twice as many are within what one account gets of a destination and of an endpoint.
BATCH: Final = 4
PROVING_ROUNDS: Final = 5
# Nothing is due by itself, and mail is not signed: an RSA signature costs more than anything else, in no call.
TESTING: Final = {"poll_milliseconds": 60_000, "sign": False, "hourly_checks": False}
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - for a temporary folder in it
BODY: Final = message.as_json("ascii")
MIME: Final = message.as_mime("ascii").replace(b"\n", b"\r\n")
DOMAIN: Final = message.SENDER.partition("@")[2]
DESTINATION: Final = message.RECIPIENT_DOMAIN

Work = Callable[[int], Awaitable[None]]


class MessagePath(msgspec.Struct, frozen=True):
    """How messages are prepared, which is not counted, and how they go their way."""

    prepare: Work
    work: Work


class Meter:
    """Runs rounds of a path. What waits for a peer does so in a thread of its own, which is not counted."""

    def __init__(self, counting: counts.Counting) -> None:
        self._counts = counting
        self._threads = ThreadPoolExecutor(1, initializer=sys.setprofile, initargs=(None,))
        self._loop = asyncio.get_running_loop()

    async def wait(self, what: Callable[[], object]) -> None:
        """Until this returns."""
        await self._loop.run_in_executor(self._threads, what)

    def block(self, is_done: threading.Event) -> None:
        """Let the service not look before this is done."""
        is_blocked = threading.Event()

        def block() -> None:
            is_blocked.set()
            is_done.wait()

        self._loop.call_soon_threadsafe(block)
        is_blocked.wait()

    async def count(self, path: MessagePath, messages: int) -> counts.Recording:
        """What the messages cost together: the least of some rounds, as a busy machine splits what comes together.

        Where it splits most of them, the least has to come twice.
        """
        recordings: list[counts.Recording] = []
        costs: list[tuple[int, float]] = []
        for _ in range(MAX_ROUNDS):
            for _ in range(2):  # the first time to warm up
                await path.prepare(messages)
                await self.wait(self._rest)
                self._counts.restart()
                await path.work(messages)
                await self.wait(self._rest)
            recording = self._counts.recording()
            if recording.has_sweep:
                continue
            recordings.append(recording)
            # By what is not spread over many calls first: a result that came late has a commit of its own.
            costs.append((recording.statements.total(), recording.counts().calls))
            if len(costs) >= ROUNDS and costs.count(min(costs)) > 1:
                break
        return recordings[costs.index(min(costs))]

    def _rest(self) -> None:
        seen: list[int | None] = []
        while len(seen) < RESTING or len({*seen[-RESTING:]}) > 1 or seen[-1] is None:
            time.sleep(REST_SECONDS)
            seen.append(self._counts.progress)


async def nothing(_count: int) -> None:
    """No preparation."""


@contextlib.asynccontextmanager
async def open_context(folder: Path, **sections: Mapping[str, Any]) -> AsyncIterator[context.Context]:
    """A context on a store of its own."""
    settings = contexts.load(
        f"sqlite:///{folder}/postroad.db",
        limits={"request_rate": 1_000_000, "request_burst": 1_000_000, "min_free_megabytes": 0},
        warmup={"enabled": False},
        testing=TESTING,
        **sections,
    )
    async with composition.open_context(settings, clock=contexts.Clock(), actor=callers.SERVICE) as ctx:
        yield ctx


def role_context(ctx: context.Context, log: logs.Logger) -> role.RoleContext:
    """What a role is given."""

    async def render_metrics() -> bytes:
        return b""

    return role.RoleContext(ctx, log, asyncio.Event(), render_metrics)


@contextlib.asynccontextmanager
async def at_work(role_context: role.RoleContext, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """A role works during the block."""
    task = asyncio.ensure_future(work())
    try:
        yield
    finally:
        role_context.stopping.set()
        await task


@contextlib.asynccontextmanager
async def http(meter: Meter, folder: Path, log: logs.Logger) -> AsyncIterator[MessagePath]:
    """`POST /emails`, each on a connection of its own."""
    async with open_context(folder, http={"listen": "127.0.0.1:0"}) as ctx:
        account_id = await bulk_queue.new_account(ctx, "Shop", domain=DOMAIN)
        scopes = frozenset({callers.Permission.SEND})
        _, key = await api_keys.create(ctx, account_id, credential_id=None, name="default", scopes=scopes)
        given = role_context(ctx, log)
        started = await listeners.start_api(given)
        numbers = itertools.count()
        with open_clients(started.addresses["http"]) as clients:

            async def work(count: int) -> None:
                for client in clients[:count]:
                    client.send(post(key, f"{next(numbers):012}"))
                await meter.wait(lambda: [client.receive(peers.is_http_response) for client in clients[:count]])

            async with at_work(given, started.work):
                yield MessagePath(nothing, work)


def post(key: str, number: str) -> bytes:
    """The request, as usual client libraries write it."""
    body = BODY.replace(message.SERIAL.encode(), number.encode())
    fields = (
        "POST /emails HTTP/1.1",
        "Host: mail.example.com",
        f"Authorization: Bearer {key}",
        "Content-Type: application/json",
        f"Idempotency-Key: {number}",
        "User-Agent: client/1.0",
        "Accept: */*",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*fields, "", "")).encode() + body


@contextlib.contextmanager
def open_clients(address: Any) -> Iterator[list[peers.Client]]:  # noqa: ANN401 - host and port, in one of two types
    """Connections for a batch of the larger size."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(contextlib.closing(peers.Client((address.host, address.port))))
            for _ in range(2 * BATCH)
        ]


@contextlib.asynccontextmanager
async def smtp(meter: Meter, folder: Path, log: logs.Logger) -> AsyncIterator[MessagePath]:
    """A message in a session that has logged in, each in one of its own, a command at a time."""
    submission = {"listen": "127.0.0.1:0", "auth_without_tls": True}
    async with open_context(folder, submission=submission) as ctx:
        account_id = await bulk_queue.new_account(ctx, "Shop", domain=DOMAIN)
        credential, password = await credentials.create(ctx, account_id, "default")
        given = role_context(ctx, log)
        started = await listeners.start_submission(given)
        with open_clients(started.addresses["submission"]) as clients:

            async def say(command: bytes, count: int) -> None:
                for client in clients[:count]:
                    client.send(command)
                await meter.wait(lambda: [client.receive(peers.is_reply) for client in clients[:count]])

            async def work(count: int) -> None:
                for command in (
                    f"MAIL FROM:<{message.SENDER}>\r\n".encode(),
                    f"RCPT TO:<customer@{DESTINATION}>\r\n".encode(),
                    b"DATA\r\n",
                    MIME + b".\r\n",
                ):
                    await say(command, count)

            async with at_work(given, started.work):
                await meter.wait(lambda: [client.receive(peers.is_reply) for client in clients])
                await say(b"EHLO client.example.com\r\n", len(clients))
                login = base64.b64encode(f"\0{credential.username}\0{password}".encode())
                await say(b"AUTH PLAIN " + login + b"\r\n", len(clients))
                yield MessagePath(nothing, work)


@contextlib.asynccontextmanager
async def delivery(meter: Meter, folder: Path, log: logs.Logger) -> AsyncIterator[MessagePath]:
    """From the queue to a host that DNS names, over connections that are open, to the recorded result."""
    sink = peers.Server(peers.answer_smtp, meter.block, greeting=b"220 mx.example.net\r\n")
    async with dns_server.running(engine_harness.zones_of({"mx.example.net": "127.0.0.1"}, domain=DESTINATION)) as dns:
        delivering = {
            "hostname": "mail.example.com",
            "resolvers": [dns.address],
            "mx_port": sink.port,
            "allow_private": ["127.0.0.0/8"],
        }
        unlimited = {"connections": 500, "messages_per_second": 1_000_000, "messages_per_connection": 1_000_000}
        async with open_context(folder, delivery=delivering, providers={"others": unlimited}) as ctx:
            account_id = await bulk_queue.new_account(ctx, "Shop", domain=DOMAIN)
            given = role_context(ctx, log)
            engine = await delivery_engine.open_engine(ctx, log=log)

            async def prepare(count: int) -> None:
                made = [
                    bulk_queue.submission(ctx, account_id, [f"ada@{DESTINATION}"], now=ctx.clock() + index, mime=MIME)
                    for index in range(count)
                ]
                if not made:
                    return
                async with ctx.store.transaction() as tx:
                    await transaction.store_entries(tx, made, policies=bulk_queue.POLICIES, outbox=ctx.outbox)

            async def work(count: int) -> None:
                sink.expect(count)
                if count:
                    ctx.mail_wakeup.set()
                await meter.wait(lambda: sink.wait(count))

            async with at_work(given, lambda: engine.run(given.stopping)):
                # A destination gets more connections with each message that it takes.
                for _ in range(PROVING_ROUNDS):
                    await prepare(2 * BATCH)
                    ctx.mail_wakeup.set()
                    await meter.wait(lambda: sink.wait(2 * BATCH))
                yield MessagePath(prepare, work)


@contextlib.asynccontextmanager
async def webhook(meter: Meter, folder: Path, log: logs.Logger) -> AsyncIterator[MessagePath]:
    """From the event to an endpoint, over connections that are open, to the recorded response."""
    endpoint = peers.Server(peers.answer_http, meter.block)
    async with open_context(folder, webhooks={"allow_insecure": True}) as ctx:
        account_id = await bulk_queue.new_account(ctx, "Shop", domain=DOMAIN)
        await endpoints.save(ctx, account_id, url=f"http://127.0.0.1:{endpoint.port}/hook")
        given = role_context(ctx, log)
        engine = webhook_engine.Engine(ctx, log=log)

        async def prepare(count: int) -> None:
            for _ in range(count):
                await webhook_rows.put(ctx, account_id)

        async def work(count: int) -> None:
            endpoint.expect(count)
            if count:
                ctx.webhook_wakeup.set()
            await meter.wait(lambda: endpoint.wait(count))

        async with at_work(given, lambda: engine.run(given.stopping)):
            for _ in range(PROVING_ROUNDS):
                await prepare(2 * BATCH)
                ctx.webhook_wakeup.set()
                await meter.wait(lambda: endpoint.wait(2 * BATCH))
            yield MessagePath(prepare, work)


PATHS: Final = {"http": http, "smtp": smtp, "delivery": delivery, "webhook": webhook}


async def measure(name: str, log: logs.Logger, folder: Path) -> tuple[counts.Recording, counts.Recording]:
    """What a message of a path costs alone, and what those of a batch do."""
    meter = Meter(counts.Counting())
    async with PATHS[name](meter, folder, log) as path:
        recorded = {count: await meter.count(path, count) for count in (2 * BATCH, BATCH, 1, 0)}
    return recorded[1].minus(recorded[0]), recorded[2 * BATCH].minus(recorded[BATCH])


def main() -> None:
    """Print the counts, or what is behind them."""
    options = argparse.ArgumentParser(prog="python -m tests.budget.measurement", description=__doc__)
    options.add_argument("path", choices=PATHS)
    options.add_argument("--alone", action="store_true", help="the functions and statements of a message alone")
    options.add_argument("--batch", action="store_true", help="the same of a message of a batch")
    given = options.parse_args()
    # In memory, where there is such a folder: how long a commit takes is not counted.
    folders = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
    with folders as folder, Path(os.devnull).open("w") as sink:
        log = logs.configure(form="json", level="info", stream=sink)
        alone, batch = asyncio.run(measure(given.path, log, Path(folder)))
    if given.alone or given.batch:
        sys.stdout.write(batch.table(BATCH) if given.batch else alone.table(1))
    else:
        sys.stdout.buffer.write(msgspec.json.encode({"alone": alone.counts(), "batch": batch.counts(BATCH)}) + b"\n")


if __name__ == "__main__":
    main()
