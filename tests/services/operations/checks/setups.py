"""An installation as the checks see it, and the ways to break it."""

import asyncio
import contextlib
import datetime as dt
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import trustme

from postroad import config
from postroad.network.dns import resolver
from postroad.services.operations.checks import findings, table
from postroad.storage.engine.store import Store
from postroad.storage.operations import processes
from tests import contexts, dns_server

NAME = "mail.example.org"
REVERSE = "1.0.0.127.in-addr.arpa"
HOST = "mx1"
NOW = 1_800_000_000 * contexts.SECOND
ROLES = ("api", "delivery", "maintenance", "webhooks", "submission", "inbound")

# For checks that only want to know that there is one.
STORE: Store = object()  # type: ignore[assignment]

Overrides = Mapping[str, Any]


def zones(**changes: Any) -> dns_server.Zones:
    """The DNS of a good installation, with changes; `mail_example_org` stands for the name with dots."""
    good: dns_server.Zones = {
        NAME: {"A": ["127.0.0.1"]},
        REVERSE: {"PTR": [f"{NAME}."]},
        "bounces.example.org": {"MX": [f"10 {NAME}."]},
    }
    return {**good, **{name.replace("__", "-").replace("_", "."): types for name, types in changes.items()}}


def process(name: str = f"{HOST}:7", *, roles: Sequence[str] = ROLES, started_at: int = NOW) -> processes.Process:
    host, _, number = name.partition(":")
    return processes.Process(name, host, int(number), tuple(roles), "0.1.0", started_at, NOW)


def given(
    dns: dns_server.DnsServer | None = None,
    overrides: Overrides | None = None,
    *,
    hostname: str = NAME,
    store: Store | None = None,
    running: Sequence[processes.Process] = (),
    clock: int = NOW,
) -> findings.Subject:
    """An installation with these settings."""
    merged = {"security": {"installation_key": contexts.SECRET_KEY}, **(overrides or {})}
    return findings.Subject(
        settings=config.load(environment={}, overrides=merged),
        hostname=hostname,
        short_name=HOST,
        dns=resolver.Resolver([dns.address] if dns else ["127.0.0.1:9"]),
        clock=lambda: clock,
        store=store,
        database=findings.ok("the database is reachable"),
        running=running,
    )


def certificate(folder: Path, name: str = NAME, *, days: float | None = 80) -> tuple[dict[str, str], ssl.SSLContext]:
    """The settings of a certificate that ends so many days after NOW, or in years, and the context of its server."""
    now = dt.datetime.fromtimestamp(NOW / contexts.SECOND, dt.UTC)
    issued = trustme.CA().issue_cert(name, not_after=now + dt.timedelta(days=days) if days is not None else None)
    issued.private_key_pem.write_to_path(str(folder / "key.pem"))
    (folder / "key.pem").chmod(0o600)
    (folder / "chain.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issued.configure_cert(context)
    return {"certificate": str(folder / "chain.pem"), "key": str(folder / "key.pem")}, context


@contextlib.asynccontextmanager
async def http_server(status: str = "200 OK", *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that answers every request with this status; gives its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def told(name: str, seen: findings.Subject) -> list[tuple[str, str, str]]:
    """What a check says: the state, what was found, and what to do."""
    result = await table.run_one(name, table.CHECKS[name], seen)
    return [(one.state.value, one.found, one.advice) for one in result.findings]
