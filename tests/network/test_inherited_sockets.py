"""Sockets of a service manager are taken by the process that they are meant for, and shared by its frontends."""

import contextlib
import os
import socket
from collections.abc import Iterator

import pytest

from postroad.network import service_manager


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
