"""Outages of the store, and stops: newcomers are refused for now, what is under way is finished, and nothing is lost.

Each outage ends with the service as it was before, without a restart, and with nothing half-stored or sent twice.
"""

import asyncio
import contextlib
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.reliability import crashable_stores, libc_faults, service_process, sinks, submission_service, whole_service
from tests.reliability.service_process import Callers, Receipt, Service
from tests.reliability.submission_service import STOPPING, Reply, Senders, content

SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
STOPPED = "4.3.2 Service shutting down; try again later"


@dataclass(frozen=True, slots=True)
class Outage:
    """A store for trouble: what the service runs under, and how the trouble begins and ends."""

    url: str
    begin: Callable[[], None]
    end: Callable[[], None]
    words: Sequence[str] = ()


@pytest.fixture(params=["no flush", "server stopped", "server crashed"])
def outage(request: pytest.FixtureRequest) -> Iterator[Outage]:
    if request.param == "no flush":
        libc: libc_faults.LibcFaults = request.getfixturevalue("libc")
        url = str(request.getfixturevalue("clean_sqlite_url"))
        yield Outage(url, libc.fail_syncs, libc.mend, libc.words)
        return
    with crashable_stores.CrashingServer() as server:
        begin = server.stop if request.param == "server stopped" else server.crash
        yield Outage(server.create_database(), begin, server.start)


async def test_an_outage_refuses_newcomers_for_now_and_loses_nothing(outage: Outage, tmp_path: Path) -> None:
    async with whole_service.running_service(tmp_path, outage.url, *outage.words) as whole:
        await whole.accept("first", "second")
        gate = await whole.under_way("in flight", "reported")
        await asyncio.to_thread(outage.begin)
        # Nobody can be recognised by a store that is away, which is not to say that anybody is unknown.
        await whole.refuse("third", "fourth", "third", "fourth")
        whole.sink.release(sinks.Point.CONTENT)
        gate.open()
        await whole.says("results_recording_deferred")
        await whole.says("webhook_result_recording_deferred")
        assert (await get(whole, "/healthz")).status_code == 200
        assert (await get(whole, "/readyz")).status_code == 503
        # Callers hear that it is so; the log says why.
        log = whole.service.log.read_bytes().splitlines()
        assert any(b'"service_unavailable"' in line and b'"cause"' in line for line in log)
        if outage.words:
            # Readers go on.
            assert (await get(whole, f"/emails/{whole.accepted['first']}")).status_code == 200
            assert (await whole.post("first")).headers["idempotent-replayed"] == "true"

        await asyncio.to_thread(outage.end)
        await whole.accept("third", "fourth")
        assert (await get(whole, "/readyz")).status_code == 200
        await whole.finished()
        # What is there now is what was acknowledged, also for whoever finds it after a power cut.
        await whole.service.kill()
        await whole.service.start()
    await whole.prove()


async def get(whole: whole_service.WholeService, path: str) -> httpx.Response:
    return await whole.client.get(f"{whole.service.base_url}{path}", auth=whole.login)


@SQLITE
async def test_a_store_that_is_locked_for_long_is_a_temporary_failure(url: str, tmp_path: Path) -> None:
    roles, limits = ("api", "submission"), {"accept_seconds": 1}
    async with (
        submission_service.running(tmp_path, url, roles=roles, limits=limits) as service,
        submission_service.sending(service) as senders,
        httpx.AsyncClient(base_url=service.base_url, timeout=service_process.TIMEOUT_SECONDS) as client,
    ):

        async def post(key: str) -> httpx.Response:
            headers = {"Idempotency-Key": key}
            body = {**Callers.body(key), "from": submission_service.SENDER}
            return await client.post("/emails", json=body, auth=senders.login, headers=headers)

        keys = [f"locked out {number}" for number in range(4)]
        async with senders.session() as session:
            async with submission_service.store_locked(service, senders.account_id):
                # The first waits for the lock, the others behind it, and not as long.
                sent = asyncio.create_task(session.send(content("by smtp")))
                responses, reply = await asyncio.gather(*map(post, keys)), await sent
                for response in responses:
                    service_process.check_refusal(response, 503, "temporary_failure")
                assert (reply.code, reply.text.partition(":")[0]) == whole_service.BUSY
                assert (await client.get("/readyz")).status_code == 503
            assert (await client.get("/readyz")).status_code == 200
            # Everybody is as good as before, the session too.
            senders.accepted["by smtp"] = (await session.send(content("by smtp"))).message_id
        for key in keys:
            senders.accepted[key] = (await post(key)).json()["id"]
        assert await service.stop() == 0
        assert service.errors() == []
        await senders.prove()


@contextlib.asynccontextmanager
async def called(folder: Path, url: str, **limits: int) -> AsyncIterator[Callers]:
    """A running service with callers; in the end it stops cleanly and its store is consistent."""
    async with service_process.running(folder, url, **limits) as service, service_process.calling(service) as callers:
        yield callers
        if service.process.poll() is None:
            assert await service.stop() == 0
        assert service.errors() == []
        await callers.prove()


async def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    service = Service(tmp_path, f"sqlite:///{tmp_path}/postroad.db")
    async with service_process.ending(service):
        reader = reader_of_two_lines(service.log)
        assert reader.stdin is not None
        with reader.stdin:
            await service.start(log=reader.stdin)
        assert reader.wait(service_process.TIMEOUT_SECONDS) == 0
        async with service_process.calling(service) as callers:
            for number in range(3):
                await callers.send(f"key {number}")
            assert await service.stop() == 0
            await callers.prove()


def reader_of_two_lines(log: Path) -> subprocess.Popen[bytes]:
    """Whoever writes to it finds a closed pipe after the migration and the start."""
    with log.open("wb") as file:
        return subprocess.Popen(["head", "-n", "2"], stdin=subprocess.PIPE, stdout=file)


async def test_a_stop_answers_what_is_under_way_and_takes_nothing_new(url: str, tmp_path: Path) -> None:
    async with called(tmp_path, url) as callers:
        await callers.send("before")
        async with submission_service.store_locked(callers.service, callers.account.id):
            under_way = {key: await one_under_way(callers, key) for key in ("one", "two", "three")}
            stopped = asyncio.create_task(callers.service.stop())
            await service_process.until(lambda: is_refused(callers))
            assert not any(task.done() for task in (*under_way.values(), stopped))
        for key, task in under_way.items():
            callers.receipts[key] = Receipt.of(await task)
            assert not callers.receipts[key].replayed
        assert await stopped == 0


async def one_under_way(callers: Callers, key: str) -> asyncio.Task[httpx.Response]:
    """A request that the service works on: of two with one key, the other one is answered."""
    tasks = {asyncio.create_task(callers.post(key)) for _ in range(2)}
    (held_off,), (under_way,) = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    service_process.check_refusal(await held_off, 409, "idempotency_in_progress")
    return under_way


async def is_refused(callers: Callers) -> bool:
    """Whether a newcomer finds nobody at home."""
    try:
        _, writer = await asyncio.open_connection(*callers.service.address)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


@contextlib.asynccontextmanager
async def sent_to(folder: Path, url: str, *, grace_seconds: int = 20) -> AsyncIterator[Senders]:
    """A service with clients; in the end it stops cleanly and its store is consistent."""
    async with (
        submission_service.running(folder, url, grace_seconds=grace_seconds) as service,
        submission_service.sending(service) as senders,
    ):
        yield senders
        if service.process.poll() is None:
            assert await service.stop() == 0
        assert service.errors() == []
        await senders.prove()


async def test_a_stop_finishes_what_is_under_way_and_lets_the_others_go(url: str, tmp_path: Path) -> None:
    async with sent_to(tmp_path, url) as senders, contextlib.AsyncExitStack() as stack:
        idle, halfway, waiting = [await stack.enter_async_context(senders.session()) for _ in range(3)]
        octets = content("halfway")
        assert (await halfway.begin()).code == 354
        halfway.write(octets[:100])
        async with submission_service.store_locked(senders.service, senders.account_id):
            assert (await waiting.begin()).code == 354
            waiting.write(content("waiting"))
            senders.service.process.terminate()
            await service_process.until(senders.service.is_stopping)
            assert await idle.reply() == Reply(STOPPING, STOPPED)
            assert await idle.is_over()
            assert senders.service.smtp is not None
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*senders.service.smtp)
            assert senders.service.process.poll() is None
        senders.accepted["waiting"] = (await waiting.reply()).message_id
        senders.accepted["halfway"] = (await halfway.say(octets[100:])).message_id
        for session in (waiting, halfway):
            assert await session.reply() == Reply(STOPPING, STOPPED)
            assert await session.is_over()
        assert await senders.service.ended() == 0


@SQLITE
async def test_a_stop_waits_for_nobody_longer_than_the_grace_time(url: str, tmp_path: Path) -> None:
    async with sent_to(tmp_path, url, grace_seconds=1) as senders, senders.session() as session:
        assert (await session.begin()).code == 354
        session.write(content("never ends")[:-5])
        assert await senders.service.stop() == 0
        with contextlib.suppress(ConnectionResetError):
            assert await session.is_over()


def check_one_was_accepted(responses: list[httpx.Response]) -> None:
    """One request made a message; every other one was told to wait, or got the same answer."""
    accepted = [Receipt.of(response) for response in responses if response.status_code == 202]
    assert Counter(receipt.replayed for receipt in accepted)[False] == 1
    assert len({(receipt.body, receipt.request_id) for receipt in accepted}) == 1
    for response in responses:
        if response.status_code != 202:
            service_process.check_refusal(response, 409, "idempotency_in_progress")


def first_receipt(responses: list[httpx.Response]) -> Receipt:
    return next(
        receipt
        for receipt in map(Receipt.of, (one for one in responses if one.status_code == 202))
        if not receipt.replayed
    )


async def test_two_hosts_that_get_the_same_key_at_once_make_one_message(
    clean_postgres_url: str, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    async with (
        called(tmp_path, clean_postgres_url) as callers,
        service_process.running(tmp_path / "other", clean_postgres_url) as other,
    ):
        hosts = (callers.service.base_url, other.base_url)
        for number in range(20):
            key = f"same-{number}"
            responses = await asyncio.gather(*(callers.post(key, base_url=host) for host in hosts * 2))
            check_one_was_accepted(responses)
            callers.receipts[key] = first_receipt(responses)
        for number in range(20):
            key = f"different-{number}"
            here, there = await asyncio.gather(*(callers.post(key, base_url=host, text=host) for host in hosts))
            won, lost = (here, there) if here.status_code == 202 else (there, here)
            callers.receipts[key] = Receipt.of(won)
            service_process.check_refusal(lost, 409, "idempotency_conflict")
        assert await other.stop() == 0
        assert other.errors() == []
