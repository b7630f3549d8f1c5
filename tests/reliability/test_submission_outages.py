"""Outages of the SMTP service: a stop under load, and a store that is unavailable, locked or full.

What is under way is finished, everybody else is refused temporarily, and nobody permanently: no reply is
a 5xx. Afterwards the service is as it was before, without a restart, and what was taken is there.
"""

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.postgres_server import PostgresServer
from tests.reliability import service_process, submission_service
from tests.reliability.submission_service import ACCEPTED, STOPPING, Reply, Senders, content

CLIENTS = 6
SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
LARGE = "Hello\r\n" * 100_000
MIDDLE = "Hello\r\n" * 30_000
# Less than a log of the database needs, even one that was emptied.
ONE_PAGE = 4096
STOPPED = "4.3.2 Service shutting down; try again later"


@contextlib.asynccontextmanager
async def sent_to(folder: Path, url: str, *, grace_seconds: int = 20, **limits: int) -> AsyncIterator[Senders]:
    """A service with clients; in the end it stops cleanly and its store is consistent."""
    async with (
        submission_service.running(folder, url, grace_seconds=grace_seconds, limits=limits) as service,
        submission_service.sending(service) as senders,
    ):
        yield senders
        if service.process.poll() is None:
            assert await service.stop() == 0
        assert service.errors() == []
        await senders.prove()


def check(reply: Reply | None, code: int, words: str) -> None:
    """The codes, and the code word of the error."""
    assert reply is not None
    assert (reply.code, reply.text.partition(":")[0]) == (code, words), reply


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


async def test_a_stop_in_the_rush_hour_loses_nothing(url: str, tmp_path: Path) -> None:
    async with sent_to(tmp_path, url) as senders:

        async def work(number: int) -> None:
            client, count = senders.client(), 0
            while senders.service.process.poll() is None:
                await senders.once(client, f"{number}-{count}")
                count += 1

        async def are_at_work() -> bool:
            return len(senders.accepted) > 5 * CLIENTS

        async with asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(work(number))
            await service_process.until(are_at_work)
            assert await senders.service.stop() == 0
        assert {reply.code for reply in senders.refusals} <= {STOPPING}
        # In an orderly stop nobody is left in doubt: what was not answered was not taken.
        senders.unanswered.clear()


@SQLITE
async def test_a_stop_waits_for_nobody_longer_than_the_grace_time(url: str, tmp_path: Path) -> None:
    async with sent_to(tmp_path, url, grace_seconds=1) as senders, senders.session() as session:
        assert (await session.begin()).code == 354
        session.write(content("never ends")[:-5])
        assert await senders.service.stop() == 0
        with contextlib.suppress(ConnectionResetError):
            assert await session.is_over()


async def test_a_database_server_that_stops_and_starts_is_waited_for_without_a_restart(tmp_path: Path) -> None:
    with PostgresServer() as server:
        async with sent_to(tmp_path, server.create_database()) as senders:
            client = senders.client()
            await senders.send_until_answered(client, "before")
            async with senders.session() as halfway:
                assert (await halfway.begin()).code == 354
                await asyncio.to_thread(server.stop)
                check(await client.attempt(content("away", key="away")), 421, "4.3.2 service_unavailable")
                check(await halfway.say(content("halfway")), 421, "4.3.2 service_unavailable")
                assert await halfway.is_over()
            # Nobody can be recognised now, which is not to say that anybody is unknown.
            check(await client.attempt(content("away", key="away")), 421, "4.3.2 service_unavailable")
            crowd = [
                asyncio.create_task(senders.send_until_answered(senders.client(), f"{number}"))
                for number in range(CLIENTS)
            ]

            async def have_all_been_refused() -> bool:
                return len(senders.refusals) >= CLIENTS

            await service_process.until(have_all_been_refused)
            await asyncio.to_thread(server.start)
            await asyncio.gather(*crowd, senders.send_until_answered(client, "away"))
            assert {reply.code for reply in senders.refusals} <= {421, 451}
            assert len(senders.accepted) == CLIENTS + 2


@SQLITE
async def test_a_store_that_is_locked_for_long_is_a_temporary_failure(url: str, tmp_path: Path) -> None:
    async with sent_to(tmp_path, url, accept_seconds=1) as senders, contextlib.AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(senders.session()) for _ in range(3)]
        async with submission_service.store_locked(senders.service, senders.account_id):
            # The first waits for the lock, the others behind it.
            replies = await asyncio.gather(*(session.send(content("locked out")) for session in sessions))
            for reply in replies:
                check(reply, 451, "4.3.0 temporary_failure")
        # The sessions are as good as before.
        for number, session in enumerate(sessions):
            senders.accepted[f"{number}"] = (await session.send(content(f"{number}"))).message_id


@SQLITE
async def test_a_file_that_cannot_grow_refuses_mail_and_takes_it_again_when_it_can(url: str, tmp_path: Path) -> None:
    async with sent_to(tmp_path, url) as senders:
        client = senders.client()
        await senders.send_until_answered(client, "first")
        pid = senders.service.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (ONE_PAGE, hard))
        # What fits into memory fails in the database, and what is larger where it waits for its end.
        check(await client.attempt(content("middle", key="middle", text=MIDDLE)), 421, "4.3.2 service_unavailable")
        check(await client.attempt(content("large", key="large", text=LARGE)), 452, "4.3.1 temporary_failure")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        reply = await client.attempt(content("large", key="large", text=LARGE))
        assert reply is not None
        assert reply.code == ACCEPTED
        senders.accepted["large"] = reply.message_id
        assert await senders.send_until_answered(client, "first") == senders.accepted["first"]
