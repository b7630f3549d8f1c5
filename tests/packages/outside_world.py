"""What a new host of Postroad meets: a name server, a mail server that relays, and a client that connects all the time.

    python -m tests.packages.outside_world ZONES.json

It runs in the network namespace of the host, where all ports are free. The lines of its input start and stop the
client; when the input ends, it prints what it saw.
"""
# ruff: noqa: T201 - this is what the test reads

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

from tests import dns_server, smtp_peers

DNS_PORT: Final = 53
RELAY_PORT: Final = 2525
# How long a connection may wait while the service restarts, and how often there is a new one.
BANNER_SECONDS: Final = 60
PAUSE_SECONDS: Final = 0.2


async def main(zones: dns_server.Zones) -> None:
    """Serve until the input ends."""
    banners: list[str] = []
    client: asyncio.Task[None] | None = None
    async with dns_server.running(zones, port=DNS_PORT), smtp_peers.serving(port=RELAY_PORT) as relay:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            if client is not None:
                client.cancel()
            client = asyncio.create_task(_connect(banners)) if line == "connect\n" else None
        transactions = relay.transactions
    signed = [transaction for transaction in transactions if b"DKIM-Signature:" in transaction.content]
    print(json.dumps({"delivered": len(transactions), "signed": len(signed), "banners": banners}))


async def _connect(banners: list[str]) -> None:
    """Connect to the service again and again; a refused connection is an error in place of a banner."""
    while True:
        try:
            reader, writer = await asyncio.open_connection(dns_server.LOOPBACK, 25)
            banner = await asyncio.wait_for(reader.readline(), BANNER_SECONDS)
            banners.append(banner.decode())
            writer.close()
        except OSError as problem:
            banners.append(str(problem))
        await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
