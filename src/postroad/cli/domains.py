"""`postroad domain`: the sender domains of an account."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator

import click

from postroad import errors
from postroad.cli import command, domain_texts, output, views
from postroad.model import domain_records, times
from postroad.protocol.dns import dkim_record
from postroad.services import context as services_context
from postroad.services.accounts import registry as services_accounts
from postroad.services.dkim import domain_keys, key_rotation, zone
from postroad.services.domains import checks as domain_checks
from postroad.services.domains import registry as services_domains
from postroad.services.domains import warmup_status
from postroad.storage import accounts, domains


@click.command("add", cls=command.AccountCommand)
@click.argument("name", metavar="DOMAIN")
@click.option("--verified", is_flag=True, help="Mark it as verified without a DNS check.")
async def add(
    context: services_context.Context, *, name: str, account: accounts.Account, verified: bool
) -> output.Report:
    """Add a sender domain to an account."""
    async with _name_owner_on_conflict(context, account.id, name):
        domain = await services_domains.add(context, account.id, name, verified=verified)
    return await domain_report(context, domain)


@click.command("list", cls=command.AccountCommand)
async def show_list(context: services_context.Context, account: accounts.Account) -> output.Report:
    """List an account's domains."""
    listed = await services_domains.of_account(context, account.id)
    records = await domain_keys.existing_records(context, listed)
    selectors = {domain_id: record.selector for domain_id, record in records.items()}
    rows = [(one.id, one.name, times.optional_to_wire(one.verified_at), selectors.get(one.id)) for one in listed]
    text = output.table(["id", "domain", "verified", "selector"], rows, empty="There are no domains.")
    return output.Report(data={"domains": [views.domain(one, records.get(one.id)) for one in listed]}, text=text)


@click.command("show", cls=command.AccountCommand)
@click.argument("name", metavar="DOMAIN")
async def show(context: services_context.Context, name: str, account: accounts.Account) -> output.Report:
    """Show a domain with its DNS records and warm-up."""
    return await domain_report(context, await services_domains.by_name(context, account.id, name))


@click.command("verify", cls=command.AccountCommand)
@click.argument("name", metavar="DOMAIN")
async def verify(context: services_context.Context, name: str, account: accounts.Account) -> output.Report:
    """Mark a domain as verified without a DNS check."""
    domain = await services_domains.by_name(context, account.id, name)
    async with _name_owner_on_conflict(context, domain.account_id, name):
        domain = await services_domains.verify(context, domain.account_id, domain.id, by=domains.OPERATOR)
    return await domain_report(context, domain)


async def check(context: services_context.Context, name: str, account: accounts.Account) -> output.Report:
    """Check the DNS records of a domain, for `postroad domain check` on an installation."""
    domain = await services_domains.by_name(context, account.id, name)
    checked = await domain_checks.check(context, domain)
    return await domain_report(context, checked.domain, is_check=True)


@click.command("rotate-key", cls=command.AccountCommand)
@click.argument("name", metavar="DOMAIN")
async def rotate_key(context: services_context.Context, name: str, account: accounts.Account) -> output.Report:
    """Create a new DKIM key for a domain. It signs as soon as its record is in DNS."""
    domain = await services_domains.by_name(context, account.id, name)
    await key_rotation.rotate(context, domain)
    report = await domain_report(context, domain)
    steps = domain_texts.rotation_steps(domain.name, is_in_zone=bool(context.settings.domains.key_zone))
    return dataclasses.replace(report, text=f"{report.text}\n{steps}")


@click.command("records", cls=command.StoreCommand)
async def zone_records(context: services_context.Context) -> output.Report:
    """Print the DKIM keys of all domains as lines of the operator's zone."""
    records = await zone.records(context)
    lines = [dkim_record.zone_line(record.name, record.value) for record in records]
    return output.Report(data={"records": [dataclasses.asdict(record) for record in records]}, text="\n".join(lines))


@click.command("warm", cls=command.AccountCommand)
@click.argument("name", metavar="DOMAIN")
@click.option("--off", is_flag=True, help="Resume the warm-up where it stopped.")
async def warm(context: services_context.Context, *, name: str, account: accounts.Account, off: bool) -> output.Report:
    """Exempt a domain with an established reputation from warm-up."""
    domain = await services_domains.by_name(context, account.id, name)
    return await domain_report(
        context, await services_domains.set_warm(context, domain.account_id, domain.id, warm=not off)
    )


@click.command("remove", cls=command.AccountCommand)
@click.argument("name", metavar="DOMAIN")
@click.option("--yes", is_flag=True, help="Confirm the removal of a verified domain.")
async def remove(
    context: services_context.Context, *, name: str, account: accounts.Account, yes: bool
) -> output.Report:
    """Remove a domain and its DKIM key from an account. Another account can then verify it."""
    domain = await services_domains.by_name(context, account.id, name)
    if domain.verified_at is not None and not yes:
        raise errors.InvalidRequest(
            f"{domain.name} is verified, and {account.name} ({account.id}) can no longer send from it; "
            "add --yes to confirm"
        )
    await services_domains.remove(context, account.id, domain.id)
    text = f"{domain.name} and its DKIM key are removed from the account."
    return output.Report(data={"removed": domain.name}, text=text)


@contextlib.asynccontextmanager
async def _name_owner_on_conflict(context: services_context.Context, account_id: str, name: str) -> AsyncIterator[None]:
    """Name the account that has verified the domain, in a conflict."""
    try:
        yield
    except errors.Conflict as problem:
        owner_id = await services_domains.verified_owner(context, name)
        if owner_id in (None, account_id):
            raise
        account = await services_accounts.find(context, owner_id)
        msg = f"{problem.message}: {account.name} ({account.id}); remove it there with 'postroad domain remove'"
        raise errors.Conflict(msg) from problem


async def domain_report(
    context: services_context.Context, domain: domains.Domain, *, is_check: bool = False
) -> output.Report:
    """The full report of a domain. A check sets the exit code and omits the zone lines of correct records."""
    key = await domain_keys.record(context, domain)
    records = [domain_texts.for_operator(one) for one in await domain_checks.records(context, domain)]
    warmup_state = await warmup_status.view(context, domain)
    text = "\n".join(
        [
            domain_texts.status(domain),
            domain_texts.warmup_text(warmup_state),
            "DNS records:",
            domain_texts.records(records, only_incomplete=is_check),
        ]
    )
    shown = {"records": [views.dns_record(one) for one in records], "warmup": views.warmup_view(warmup_state)}
    is_open = any(one.required and one.state != domain_records.RecordState.OK for one in records)
    return output.Report(
        data={"domain": views.domain(domain, key) | shown}, text=text, exit_code=1 if is_check and is_open else 0
    )
