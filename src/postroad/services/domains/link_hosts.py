"""The host of a domain's unsubscribe links: a name of the domain that leads to this installation."""

import asyncio
from urllib import parse

from postroad import config, context, errors
from postroad.model.units import labels
from postroad.network.dns import resolver
from postroad.services import usage_limits
from postroad.services.domains import dns_checks, domain_registry
from postroad.storage.mail import domains


async def change(ctx: context.Context, account_id: str, domain_id: str, name: str | None) -> domains.Domain:
    """Set the host when DNS shows that it leads here; None removes it."""
    domain = await domain_registry.find(ctx, account_id, domain_id)
    host = None if name is None else labels.parse_domain("link_host", name)
    if host is not None:
        if not f".{host}".endswith(f".{domain.name}"):
            raise errors.InvalidRequest(f"link_host: must be {domain.name} or a name below it")
        with usage_limits.acquire(ctx, dns_checks.CHECKS, account_id):
            await _check_leads_here(ctx, host, account_id)
    return await domain_registry.set_link_host(ctx, account_id, domain_id, host)


async def _check_leads_here(ctx: context.Context, host: str, account_id: str) -> None:
    names = (parse.urlsplit(config.public_url(ctx.settings)).hostname, (await ctx.dns.service()).host)
    own = [name for name in names if name]
    if not own:
        raise errors.Conflict("link_host: this installation has no public name; the operator sets http.base_url")
    async with ctx.dns.turn(party=account_id) as dns:
        alias = await dns.cname(host)
        if isinstance(alias, resolver.Answer) and not set(own).isdisjoint(alias.records):
            return
        found, *ours = await asyncio.gather(*(dns.addresses(name) for name in (host, *own)))
    if isinstance(found, resolver.Failure):
        raise errors.Conflict(f"link_host: DNS did not respond for {host}; try again")
    addresses = {address for answer in ours if isinstance(answer, resolver.Answer) for address in answer.records}
    if addresses.isdisjoint(found.records):
        raise errors.Conflict(f"link_host: {host} does not lead here; publish '{host}. CNAME {own[0]}.' and try again")
