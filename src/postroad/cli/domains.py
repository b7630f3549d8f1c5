"""`postroad domain`: the domains that an account may send from."""

import click

from postroad.cli import command, naming, output, views
from postroad.model import times
from postroad.protocol import dkim_record
from postroad.services import context as services_context
from postroad.services import domain_keys
from postroad.services import domains as services_domains
from postroad.storage import domains


@click.command("add", cls=command.StoreCommand)
@click.argument("name", metavar="DOMAIN")
@naming.account_option
@click.option("--verified", is_flag=True, help="Count it as proven, without asking DNS.")
async def add(context: services_context.Context, *, name: str, account: str | None, verified: bool) -> output.Report:
    """Register a domain that an account may send from."""
    found = await naming.account(context, account)
    return await _report(context, await services_domains.add(context, found.id, name, verified=verified))


@click.command("list", cls=command.StoreCommand)
@naming.account_option
async def show_list(context: services_context.Context, account: str | None) -> output.Report:
    """List an account's domains."""
    found = await naming.account(context, account)
    listed = await services_domains.of_account(context, found.id)
    records = await domain_keys.known_records(context, listed)
    selectors = {domain_id: record.selector for domain_id, record in records.items()}
    rows = [(one.id, one.name, times.optional_to_wire(one.verified_at), selectors.get(one.id)) for one in listed]
    text = output.table(["id", "domain", "verified", "selector"], rows, empty="There are no domains.")
    return output.Report(data={"domains": [views.domain(one, records.get(one.id)) for one in listed]}, text=text)


@click.command("show", cls=command.StoreCommand)
@click.argument("name", metavar="DOMAIN")
@naming.account_option
async def show(context: services_context.Context, name: str, account: str | None) -> output.Report:
    """Show a domain, with the record to publish in its DNS."""
    found = await naming.account(context, account)
    return await _report(context, await services_domains.by_name(context, found.id, name))


@click.command("verify", cls=command.StoreCommand)
@click.argument("name", metavar="DOMAIN")
@naming.account_option
async def verify(context: services_context.Context, name: str, account: str | None) -> output.Report:
    """Count a registered domain as proven, without asking DNS."""
    found = await naming.account(context, account)
    domain = await services_domains.by_name(context, found.id, name)
    return await _report(context, await services_domains.verify(context, found.id, domain.id))


async def _report(context: services_context.Context, domain: domains.Domain) -> output.Report:
    record = await domain_keys.record(context, domain)
    state = "verified" if domain.verified_at else "not verified yet"
    text = (
        f"{domain.name} is registered, {state}: {domain.id}\n"
        "Its mail is signed (DKIM). Publish this record, so that receivers can check it:\n"
        f"{dkim_record.zone_line(record.name, record.value)}"
    )
    return output.Report(data={"domain": views.domain(domain, record)}, text=text)


GROUP = click.Group("domain", commands=[add, show_list, show, verify], help="Domains that accounts send from.")
