"""Sockets of the service manager are those of the settings that name their addresses."""

import contextlib
import socket
from collections.abc import Iterator

import pytest

from postroad import config, roles
from postroad.roles import listeners


@contextlib.contextmanager
def listening(number: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]


def settings(http: socket.socket) -> config.Settings:
    overrides = {"http": {"listen": f"127.0.0.1:{http.getsockname()[1]}"}, "inbound": {"listen": "127.0.0.1:0"}}
    return config.load(environment={}, overrides=overrides)


def test_a_socket_is_found_by_its_address() -> None:
    with listening(1) as (http,):
        assert listeners.find_inherited(settings(http), [http]) == {"http.listen": [http]}
        assert listeners.find_inherited(settings(http), []) == {}


def test_a_socket_of_no_setting_is_refused() -> None:
    with listening(2) as (http, other):
        where = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(roles.StartError, match=f"listens on {where}, which is no listen address of this service"):
            listeners.find_inherited(settings(http), [http, other])
