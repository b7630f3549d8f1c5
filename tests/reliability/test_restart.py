"""What a service manager and the clients see of a start, a stop and a restart.

Behind the sockets of a service manager connections wait for the new process, and none is refused. A client that keeps
its connections is told that they end, before it sends anything more on them.
"""

import asyncio
import contextlib
import http.client
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability import delivery_harness, service_process, submission_service
from tests.reliability.submission_service import STOPPING, Reply

CLIENTS = 4
FRONTENDS = 2
# Enough for each client to send again, on a busy machine too.
DRAIN_SECONDS = 5
PAUSE_SECONDS = 0.02
# As systemd does: the sockets are descriptors 3 and 4, and the variables name the process that is to take them.
ACTIVATE = 'exec 3<&"$1" 4<&"$2"; shift 2; LISTEN_FDS=2 LISTEN_PID=$$ exec "$@"'
CLOSING = Reply(STOPPING, "4.3.2 Service shutting down; try again later")


class Load:
    """Clients that keep their connections, over HTTP and SMTP, until it is over."""

    def __init__(self, senders: submission_service.Senders, address: tuple[str, int]) -> None:
        self.answered = 0
        self.closed = 0
        self.problems: list[Exception] = []
        self.is_over = False
        self._senders = senders
        self._address = address

    def request(self) -> None:
        """Send requests on one connection, and open another when a response says that the server closes it."""
        with contextlib.closing(http.client.HTTPConnection(*self._address)) as connection:
            while not (self.is_over or self.problems):
                try:
                    connection.request("GET", "/healthz")
                    with connection.getresponse() as response:
                        response.read()
                        self.answered += response.status == http.HTTPStatus.OK
                        self.closed += response.will_close
                except (OSError, http.client.HTTPException) as problem:
                    self.problems.append(problem)
                time.sleep(PAUSE_SECONDS)

    async def send(self, number: int) -> None:
        """Send messages in one session, and open another when the server ends it."""
        client, count = self._senders.client(), 0
        while not self.is_over:
            await self._senders.once(client, f"{number}-{count}")
            count += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def goes_on(self) -> None:
        """Return when there were more answers to requests and to messages."""
        before = self.answered, len(self._senders.accepted)

        async def has_more() -> bool:
            assert self.problems == []
            return min(self.answered - before[0], len(self._senders.accepted) - before[1]) > 2 * CLIENTS

        await service_process.until(has_more)


@contextlib.contextmanager
def listening() -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=2048)) for _ in range(2)]


async def test_a_restart_under_load_is_an_error_for_no_client(tmp_path: Path, clean_sqlite_url: str) -> None:
    with listening() as (web, mail):
        submission = {"listen": f"127.0.0.1:{mail.getsockname()[1]}", "auth_without_tls": True}
        service = submission_service.SubmissionService(
            tmp_path,
            clean_sqlite_url,
            roles=("api", "submission"),
            sections=delivery_harness.as_toml({"submission": submission}),
            frontends=FRONTENDS,
            drain_seconds=DRAIN_SECONDS,
        )
        service.file.write_text(service.file.read_text().replace("127.0.0.1:0", f"127.0.0.1:{web.getsockname()[1]}"))
        descriptors = web.fileno(), mail.fileno()

        async def start() -> None:
            await service.start("bash", "-c", ACTIVATE, "bash", *map(str, descriptors), pass_fds=descriptors)

        async with service_process.ending(service):
            await start()
            async with submission_service.sending(service) as senders, asyncio.TaskGroup() as group:
                load = Load(senders, web.getsockname())
                for number in range(CLIENTS):
                    group.create_task(asyncio.to_thread(load.request))
                    group.create_task(load.send(number))
                try:
                    await load.goes_on()
                    assert await service.stop() == 0
                    await start()
                    await load.goes_on()
                finally:
                    load.is_over = True
            await senders.prove()
    assert load.problems == []
    assert load.closed >= CLIENTS
    assert senders.unanswered == set()
    assert len(senders.refusals) >= CLIENTS
    assert {*senders.refusals} == {CLOSING}


async def test_the_service_manager_learns_when_all_listeners_are_open_and_when_it_stops(
    tmp_path: Path, clean_sqlite_url: str
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, contextlib.ExitStack() as taken:
        manager.bind(f"{tmp_path}/notify")
        manager.settimeout(0)

        async def told() -> bytes:
            async with asyncio.timeout(service_process.TIMEOUT_SECONDS):
                return await asyncio.get_running_loop().sock_recv(manager, 100)

        service = service_process.Service(tmp_path, clean_sqlite_url, frontends=FRONTENDS, drain_seconds=3600)
        variables = {"NOTIFY_SOCKET": f"{tmp_path}/notify"}
        async with service_process.ending(service):
            starting = asyncio.create_task(service.start(variables=variables))
            assert await told() == b"READY=1"
            await starting
            with socket.create_connection(service.address):
                pass
            service.process.send_signal(signal.SIGTERM)
            assert await told() == b"STOPPING=1"
            service.process.send_signal(signal.SIGTERM)
            assert await service.ended() == -signal.SIGTERM

            port = taken.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            service.file.write_text(service.file.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
            with pytest.raises(AssertionError, match="in use"):
                await service.start(variables=variables)
            assert await service.ended() == 1
            with pytest.raises(BlockingIOError):
                manager.recv(100)
