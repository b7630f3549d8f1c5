"""A service with a name server of its own, and zones that a customer would write."""

from postroad import config, context
from postroad.mail.signing import domain_keys
from postroad.model.domains.domain_records import RecordPurpose
from postroad.storage.mail import domains
from tests import contexts, dns_server

DOMAIN = "example.com"


def settings(url: str, server: dns_server.DnsServer) -> config.Settings:
    """An installation that sends from mail.example.net."""
    return contexts.load(
        url,
        domains={"spf": "include:spf.example.net"},
        delivery={"hostname": "mail.example.net", "resolvers": [server.address]},
    )


async def publish_key(ctx: context.Context, server: dns_server.DnsServer, domain: domains.Domain) -> str:
    """Put the domain's key into the zone; its name."""
    return await publish_keys(ctx, server, domain, RecordPurpose.DKIM)


async def publish_keys(
    ctx: context.Context, server: dns_server.DnsServer, domain: domains.Domain, *purposes: RecordPurpose
) -> str:
    """Put keys of the domain into the zone; the name of the last one."""
    found = {record.purpose: record for record in await domain_keys.records(ctx, domain)}
    for purpose in purposes:
        name, value = found[purpose].name, found[purpose].value or ""
        half = len(value) // 2
        server.zones[name] = {"TXT": [f'"{value[:half]}" "{value[half:]}"']}
    return found[purposes[-1]].name


async def publish_all(ctx: context.Context, server: dns_server.DnsServer, domain: domains.Domain) -> str:
    """Put everything that the domain should have into the zone, but nothing optional; the name of the key."""
    server.zones[f"bounces.{domain.name}"] = {
        "TXT": ['"v=spf1 include:spf.example.net ~all"'],
        "MX": ["10 mail.example.net."],
    }
    server.zones["mail.example.net"] = {"A": ["192.0.2.1"]}
    server.zones[f"_dmarc.{domain.name}"] = {"TXT": ['"v=DMARC1; p=none"']}
    return await publish_key(ctx, server, domain)
