"""Sockets behave differently under different event loops: every test of this folder runs on both that we support."""

import asyncio
import ssl
from collections.abc import Callable

import pytest
import trustme
import uvloop

from postroad.network import listener


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture
def old_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only stranger of a network is old enough to make room at once."""
    monkeypatch.setattr(listener, "YOUNG_SECONDS", -1.0)


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    """TLS of a server on loopback."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    return context


@pytest.fixture(scope="session")
def client_tls(authority: trustme.CA) -> ssl.SSLContext:
    """TLS of a client that trusts it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    return context
