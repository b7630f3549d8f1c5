"""Sockets behave differently under different event loops: every test of this folder runs on both that we support."""

import asyncio
from collections.abc import Callable

import pytest
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
