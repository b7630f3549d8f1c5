"""The name of this host."""

import asyncio
import contextlib
import os
import socket
from typing import Final

# The host of `postroad dev`: what the DNS records of a domain name there; nobody looks it up.
DEVELOPMENT: Final = "mail.postroad.example"


async def name() -> str:
    """The fully qualified name, if the system has one; in a thread, because it may query DNS."""
    return await asyncio.to_thread(socket.getfqdn)


def short_name() -> str:
    """The name that the system gives itself, which need not be in DNS."""
    return socket.gethostname()


def process_name() -> str:
    """A name for this process, for people: the host's short name and the process id."""
    return f"{short_name()}:{os.getpid()}"


def outbound_addresses() -> list[str]:
    """The IPv4 and IPv6 address that connections to the internet leave from, as far as there is a route.

    Connecting a datagram socket chooses the route and sends nothing. The addresses are for documentation (RFC 5737,
    RFC 3849), and no host has one.
    """
    found = []
    for family, anywhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((anywhere, 9))
            found.append(str(probe.getsockname()[0]))
    return found
