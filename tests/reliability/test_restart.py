"""A restart behind the socket of a service manager: connections wait for the new process, and none is refused."""

import asyncio
import socket
from pathlib import Path

from tests.reliability import service_process

SENDERS = 4
FRONTENDS = 2
# As systemd does: the socket is descriptor 3, and the variables name the process that is to take it.
ACTIVATE = 'exec 3<&"$0"; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Load:
    """Requests on connections of their own, one after the other, until it is over."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.answered = 0
        self.refused: list[OSError] = []
        self.is_over = False
        self._address = address

    async def run(self) -> None:
        while not self.is_over:
            try:
                reader, writer = await asyncio.open_connection(*self._address)
            except OSError as problem:
                self.refused.append(problem)
                return
            try:
                writer.write(REQUEST)
                # The answer may be missing when a request is slower to come than a stopping service waits for it.
                self.answered += (await reader.read()).startswith(b"HTTP/1.1 200")
            except OSError:
                pass
            finally:
                writer.close()

    async def goes_on(self) -> None:
        """Return when there were more answers."""
        before = self.answered

        async def has_more() -> bool:
            return bool(self.refused) or self.answered > before + 2 * SENDERS

        await service_process.until(has_more)


async def test_no_connection_is_refused_by_a_restart_under_load(tmp_path: Path, clean_sqlite_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as kept:
        service = service_process.Service(tmp_path, clean_sqlite_url, frontends=FRONTENDS)
        address = kept.getsockname()
        service.file.write_text(service.file.read_text().replace("127.0.0.1:0", f"127.0.0.1:{address[1]}"))
        load = Load(address)

        async def start() -> None:
            await service.start("bash", "-c", ACTIVATE, str(kept.fileno()), pass_fds=(kept.fileno(),))

        async with service_process.ending(service), asyncio.TaskGroup() as group:
            await start()
            for _ in range(SENDERS):
                group.create_task(load.run())
            await load.goes_on()
            assert await service.stop() == 0
            await start()
            await load.goes_on()
            load.is_over = True
    assert load.refused == []
