"""What this host is called."""

import asyncio
import os
import socket
import threading

import pytest

from postroad.network import hostname


async def test_the_name_is_asked_for_in_a_thread_because_dns_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, threads = threading.Event(), list[threading.Thread]()

    def slow_name() -> str:
        threads.append(threading.current_thread())
        go_on.wait()
        return "relay.example.com"

    monkeypatch.setattr(socket, "getfqdn", slow_name)
    asking = asyncio.create_task(hostname.name())
    await asyncio.sleep(0)
    assert not asking.done()
    go_on.set()
    assert await asking == "relay.example.com"
    assert threads != [threading.current_thread()]


def test_the_name_of_a_process_says_where_and_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "relay")
    assert hostname.process_name() == f"relay:{os.getpid()}"


def test_the_outbound_addresses_are_those_of_this_host() -> None:
    for found in hostname.outbound_addresses():
        with socket.socket(socket.AF_INET6 if ":" in found else socket.AF_INET, socket.SOCK_DGRAM) as bound:
            bound.bind((found, 0))
