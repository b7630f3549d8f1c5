"""The name of this host."""

import asyncio
import os
import socket


async def name() -> str:
    """The fully qualified name, if the system has one; in a thread, because it may query DNS."""
    return await asyncio.to_thread(socket.getfqdn)


def short_name() -> str:
    """The name that the system gives itself, which need not be in DNS."""
    return socket.gethostname()


def process_name() -> str:
    """A name for this process, for people: the host's short name and the process id."""
    return f"{short_name()}:{os.getpid()}"
