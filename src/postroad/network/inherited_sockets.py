"""Listening sockets that a service manager passes to the process it starts (sd_listen_fds(3) of systemd).

The manager keeps them open while the service restarts: connections wait in their queue instead of being refused.
"""

import socket
from collections.abc import Mapping, Sequence
from typing import Final

from postroad.network import listener

# The first that is passed, after standard input, output and error.
FIRST_DESCRIPTOR: Final = 3


def take(environment: Mapping[str, str], *, process_id: int) -> list[socket.socket]:
    """The sockets that are meant for this process. Raises OSError if one of them is no socket."""
    if environment.get("LISTEN_PID") != str(process_id):
        return []
    taken = [
        socket.socket(fileno=FIRST_DESCRIPTOR + number) for number in range(int(environment.get("LISTEN_FDS") or 0))
    ]
    for one in taken:
        one.set_inheritable(False)
        one.settimeout(0)
    return taken


def divide(sockets: Sequence[socket.socket], *, processes: int) -> list[listener.BoundSockets]:
    """What each process listens with: sockets of its own, or the same as others if there are not enough.

    A socket that nobody accepts from would keep its connections waiting.
    """
    if len(sockets) >= processes:
        return [sockets[number::processes] for number in range(processes)]
    copies = [sockets[number % len(sockets)].dup() for number in range(len(sockets), processes)]
    return [[one] for one in (*sockets, *copies)]
