"""What the service manager is told, over a socket as systemd opens it."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.network import service_manager


@pytest.mark.parametrize("is_abstract", [False, True])
def test_a_state_is_one_datagram(tmp_path: Path, *, is_abstract: bool) -> None:
    name = f"postroad-test-{os.getpid()}" if is_abstract else f"{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}" if is_abstract else name)
        service_manager.notify({"NOTIFY_SOCKET": f"@{name}" if is_abstract else name}, "READY=1")
        manager.settimeout(0)
        assert manager.recv(100) == b"READY=1"


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/notify"}])
def test_nobody_has_to_listen(environment: dict[str, str]) -> None:
    service_manager.notify(environment, "READY=1")


def test_a_manager_that_does_not_read_holds_up_nothing(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{tmp_path}/notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other, contextlib.suppress(BlockingIOError):
            other.settimeout(0)
            while True:
                other.sendto(b"READY=1", f"{tmp_path}/notify")
        telling = threading.Thread(
            target=service_manager.notify, args=({"NOTIFY_SOCKET": f"{tmp_path}/notify"}, "STOPPING=1"), daemon=True
        )
        telling.start()
        telling.join(timeout=30)
        assert not telling.is_alive()


# Sockets of a service manager are taken by the process that they are meant for, and shared by its frontends.


@contextlib.contextmanager
def listening(number: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]


def test_only_the_process_that_is_named_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(1) as (made,):
        passed = os.dup(made.fileno())
        monkeypatch.setattr(service_manager, "FIRST_DESCRIPTOR", passed)
        given = {"LISTEN_PID": "17", "LISTEN_FDS": "1"}
        assert service_manager.inherited_sockets(given, process_id=18) == []
        assert service_manager.inherited_sockets({}, process_id=17) == []
        (taken,) = service_manager.inherited_sockets(given, process_id=17)
        with taken:
            assert taken.getsockname() == made.getsockname()
            assert not taken.get_inheritable()
            assert not taken.getblocking()


def test_a_descriptor_that_is_no_socket_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    try:
        monkeypatch.setattr(service_manager, "FIRST_DESCRIPTOR", reading)
        with pytest.raises(OSError, match="non-socket"):
            service_manager.inherited_sockets({"LISTEN_PID": "17", "LISTEN_FDS": "1"}, process_id=17)
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize(
    "sockets, processes, expected",
    [(1, 1, [[0]]), (2, 2, [[0], [1]]), (3, 2, [[0, 2], [1]]), (1, 3, [[0], [0], [0]]), (2, 3, [[0], [1], [0]])],
)
def test_every_socket_is_served_and_every_process_has_one(
    sockets: int, processes: int, expected: list[list[int]]
) -> None:
    with listening(sockets) as made, contextlib.ExitStack() as stack:
        ports = [one.getsockname()[1] for one in made]
        divided = service_manager.divide_sockets(made, processes=processes)
        for one in (each for own in divided for each in own if each not in made):
            stack.enter_context(one)
        assert [[ports.index(one.getsockname()[1]) for one in own] for own in divided] == expected
