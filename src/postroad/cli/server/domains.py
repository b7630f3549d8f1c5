"""`postroad domain`: the sender domains of an account, their warm-up and DNS records as zone file lines."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Final

import click

from postroad import context as services_context
from postroad import errors
from postroad.cli.framework import command, output, views
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records, warmup
from postroad.model.units import times
from postroad.protocol.dns import tag_lists
from postroad.services.accounts import account_registry as services_accounts
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as services_domains
from postroad.services.domains import key_rotation
from postroad.storage.mail import domains
from postroad.storage.people import accounts

TITLES: Final = {
    domain_records.RecordPurpose.DKIM: "DKIM",
    domain_records.RecordPurpose.DKIM_NEXT: "DKIM, next key",
    domain_records.RecordPurpose.SPF: "SPF",
    domain_records.RecordPurpose.RETURN_PATH: "Return path",
    domain_records.RecordPurpose.DMARC: "DMARC",
    domain_records.RecordPurpose.DKIM_ED25519: "DKIM with Ed25519",
    domain_records.RecordPurpose.DKIM_ED25519_NEXT: "DKIM with Ed25519, next key",
    domain_records.RecordPurpose.DKIM_OLD: "DKIM, old key",
    domain_records.RecordPurpose.DKIM_ED25519_OLD: "DKIM with Ed25519, old key",
}


def status(domain: domains.Domain) -> str:
    """Whether the domain is verified."""
    if domain.verified_at is None:
        state = "not verified" if domain.failing_since is None else "no longer verified"
    else:
        state = "verified by DNS" if domain.verified_by == domains.DNS else "verified"
    if domain.failing_since is not None:
        state += f" (DNS check failing since {times.to_wire(domain.failing_since)})"
    return f"{domain.name} ({domain.id}): {state}"


def warmup_text(view: warmup.View | None) -> str:
    """The daily limit."""
    if view is None or view.cap is None:
        return "Warm-up: not required."
    today = f"Warm-up: {view.used} of {view.cap} recipients used today"
    if view.tomorrow == view.cap:
        return f"{today}. The limit grows the day after you use at least half of it."
    return f"{today}; tomorrow {'there is no limit' if view.tomorrow is None else f'the limit is {view.tomorrow}'}."


def rotation_steps(domain: str, *, is_in_zone: bool) -> str:
    """What to do after a key was created. In the zone of the operator, the aliases stay as they are."""
    publish = (
        "publish the output of 'postroad domain records'"
        if is_in_zone
        else "publish the record of the next key, and keep the current one"
    )
    return f"Next: {publish}; then run 'postroad domain check {domain}'. The new key signs once the check finds it."


def for_operator(shown: domain_checks.RecordStatus) -> domain_checks.RecordStatus:
    """The record for the reader of commands, who publishes what is in the zone `domains.key_zone`."""
    if not _lacks_key(shown):
        return shown
    advice = "alias found, but its key is not in your zone; run 'postroad domain records' and publish its output"
    return dataclasses.replace(shown, detail=shown.detail.replace(shown.found, advice))


def _lacks_key(shown: domain_checks.RecordStatus) -> bool:
    """Whether the customer's alias is correct, and leads to nothing."""
    return domain_records.Finding(shown.state, shown.found) == domain_records.alias_without_key()


def records_text(shown: Sequence[domain_checks.RecordStatus], *, only_incomplete: bool) -> str:
    """The records and their check results. `only_incomplete` omits the zone lines of correct records."""
    return "\n".join(_record(one, with_line=not only_incomplete or _is_incomplete(one)) for one in shown)


def _is_incomplete(shown: domain_checks.RecordStatus) -> bool:
    return shown.state != domain_records.RecordState.OK and not _lacks_key(shown)


def _record(shown: domain_checks.RecordStatus, *, with_line: bool) -> str:
    record = shown.record
    detail = shown.detail[:1].upper() + shown.detail[1:]
    text = f"{TITLES[record.purpose]}{_importance(shown)}: {shown.state}. {detail}{'' if detail.endswith('.') else '.'}"
    return f"{text}\n    {zone_line(shown)}" if with_line and shown.value is not None else text


def _importance(shown: domain_checks.RecordStatus) -> str:
    if shown.record.managed:
        return " (managed by the operator)"
    if shown.record.purpose in domain_records.OLD_KEYS or shown.required:
        return ""
    return " (optional)" if shown.optional else " (recommended)"


def zone_line(shown: domain_checks.RecordStatus) -> str:
    """The record as a line of a zone file (RFC 1035 section 5.1)."""
    value = shown.value or ""
    if shown.record.type == tag_lists.TYPE:
        return tag_lists.zone_line(shown.record.name, value.replace("\\", "\\\\").replace('"', '\\"'))
    return f"{shown.record.name}. IN {shown.record.type} {value}."


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
    """Mark a domain as verified without a DNS check. Later checks do not change that."""
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
    steps = rotation_steps(domain.name, is_in_zone=bool(context.settings.domains.key_zone))
    return dataclasses.replace(report, text=f"{report.text}\n{steps}")


@click.command("records", cls=command.StoreCommand)
async def zone_records(context: services_context.Context) -> output.Report:
    """Print the DKIM keys of all domains as lines of the operator's zone."""
    records = await key_rotation.zone_records(context)
    lines = [tag_lists.zone_line(record.name, record.value) for record in records]
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
    records = [for_operator(one) for one in await domain_checks.records(context, domain)]
    warmup_state = await services_domains.warmup_view(context, domain)
    text = "\n".join(
        [
            status(domain),
            warmup_text(warmup_state),
            "DNS records:",
            records_text(records, only_incomplete=is_check),
        ]
    )
    shown = {"records": [views.dns_record(one) for one in records], "warmup": views.warmup_view(warmup_state)}
    is_open = any(one.required and one.state != domain_records.RecordState.OK for one in records)
    return output.Report(
        data={"domain": views.domain(domain, key) | shown}, text=text, exit_code=1 if is_check and is_open else 0
    )
