"""Listening sockets from systemd (sd_listen_fds(3)), and what it is told (sd_notify(3))."""

import contextlib
import socket
from collections.abc import Mapping, Sequence
from typing import Final

from postroad.network import listener

# Listening sockets that a service manager passes to the process it starts (sd_listen_fds(3) of systemd).
#
# The manager keeps them open while the service restarts: connections wait in their queue instead of being refused.

# The first that is passed, after standard input, output and error.
FIRST_DESCRIPTOR: Final = 3


def inherited_sockets(environment: Mapping[str, str], *, process_id: int) -> list[socket.socket]:
    """The sockets that are meant for this process. Raises OSError if one of them is no socket."""
    if environment.get("LISTEN_PID") != str(process_id):
        return []
    taken = [
        socket.socket(fileno=FIRST_DESCRIPTOR + number) for number in range(int(environment.get("LISTEN_FDS") or 0))
    ]
    for listening in taken:
        listening.set_inheritable(False)
        listening.settimeout(0)
    return taken


def divide_sockets(sockets: Sequence[socket.socket], *, processes: int) -> list[listener.BoundSockets]:
    """What each process listens with: sockets of its own, or the same as others if there are not enough.

    A socket that nobody accepts from would keep its connections waiting.
    """
    if len(sockets) >= processes:
        return [sockets[number::processes] for number in range(processes)]
    copies = [sockets[number % len(sockets)].dup() for number in range(len(sockets), processes)]
    return [[listening] for listening in (*sockets, *copies)]


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
