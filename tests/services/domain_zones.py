"""A service with a name server of its own, and zones that a customer would write."""

from postroad import config
from postroad.services import context
from postroad.services.dkim import domain_keys
from postroad.storage import domains
from tests import dns_server
from tests.contexts import SECRET_KEY

DOMAIN = "example.com"


def settings(url: str, server: dns_server.DnsServer) -> config.Settings:
    """An installation that sends from mail.example.net."""
    overrides: dict[str, dict[str, object]] = {
        "database": {"url": url},
        "security": {"secret_key": SECRET_KEY},
        "domains": {"spf": "include:spf.example.net"},
        "delivery": {"hostname": "mail.example.net", "resolvers": [server.address]},
    }
    return config.load(environment={}, overrides=overrides)


async def publish_key(ctx: context.Context, server: dns_server.DnsServer, domain: domains.Domain) -> str:
    """Put the domain's key into the zone; its name."""
    record = await domain_keys.record(ctx, domain)
    half = len(record.value) // 2
    server.zones[record.name] = {"TXT": [f'"{record.value[:half]}" "{record.value[half:]}"']}
    return record.name


async def publish_all(ctx: context.Context, server: dns_server.DnsServer, domain: domains.Domain) -> str:
    """Put everything that the domain should have into the zone; the name of the key."""
    server.zones[domain.name] = {"TXT": ['"v=spf1 include:spf.example.net ~all"'], "MX": ["10 mail.example.net."]}
    server.zones[f"_dmarc.{domain.name}"] = {"TXT": ['"v=DMARC1; p=none"']}
    return await publish_key(ctx, server, domain)
