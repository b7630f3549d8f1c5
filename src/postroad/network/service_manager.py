"""Tells the service manager about this process (sd_notify(3) of systemd)."""

import contextlib
import socket
from collections.abc import Mapping


def notify(environment: Mapping[str, str], state: str) -> None:
    """Send a state, such as READY=1, if the manager wants to know; a manager that is gone is no reason to stop."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # a name in the abstract namespace of Linux
        address = f"\0{address[1:]}"
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(0)  # one that does not read must not hold up mail
        manager.sendto(state.encode(), address)
