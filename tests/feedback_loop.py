"""A feedback loop of tests: it is on the list of reporters, and its key is in a real name server."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator

import msgspec

from postroad import context
from postroad.model.units import times
from postroad.protocol.dns import tag_lists
from postroad.services.domains import domain_dns
from tests import dkim_signatures, dns_server
from tests.contexts import Clock

NAME = f"sel._domainkey.{dkim_signatures.DOMAIN}"
ZONES: dns_server.Zones = {
    NAME: {"TXT": [" ".join(f'"{part}"' for part in tag_lists.txt_strings(dkim_signatures.RECORD))]}
}


@contextlib.asynccontextmanager
async def listed(ctx: context.Context, *, zones: dns_server.Zones | None = None) -> AsyncIterator[context.Context]:
    """The context of an installation that knows the feedback loop."""
    async with dns_server.running(dict(ZONES if zones is None else zones)) as dns:
        yield asking(ctx, dns)


def asking(ctx: context.Context, dns: dns_server.DnsServer) -> context.Context:
    """The same with a name server that is running."""
    delivery = msgspec.structs.replace(ctx.settings.delivery, resolvers=(dns.address,))
    settings = msgspec.structs.replace(ctx.settings, delivery=delivery)
    ctx = dataclasses.replace(ctx, settings=settings, dns=domain_dns.DomainDns(settings))
    return with_reporters(ctx, dkim_signatures.DOMAIN)


def with_reporters(ctx: context.Context, *reporters: str) -> context.Context:
    """The same with other reporters."""
    inbound = msgspec.structs.replace(ctx.settings.inbound, complaint_reporters=reporters)
    return dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, inbound=inbound))


def signed(content: bytes, *, sent_to: str = "", at: int | None = Clock().now) -> bytes:
    """A report as the feedback loop sends it at this time, in microseconds; None: its signature does not say when."""
    content = content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    content = b"From: <feedback@provider.example>\r\n" * (b"From: " not in content) + content
    to = f"To: <{sent_to}>\r\n" if sent_to else ""
    return dkim_signatures.sign(to.encode() + content, tags={"t": None if at is None else str(at // times.SECOND)})
