"""What the service manager is told, over a socket as systemd opens it."""

import contextlib
import os
import socket
import threading
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
