"""`postroad queue hold` and `queue release`: keep mail back at run time, and after a restore."""

from typing import Final

import click

from postroad.cli import account_option, command, output, queue_texts
from postroad.model import times, wire_fields
from postroad.services import context as services_context
from postroad.services.queue import holds, inspection
from postroad.storage import holds as stored_holds

SCOPE: Final = (
    click.Option(["--account"], metavar="ACCOUNT", help="Only mail of this account, by id or unique name."),
    click.Option(["--domain"], metavar="DOMAIN", help="Only mail to this recipient domain."),
)
# Enough to decide by; --list has everything.
TOP_COUNTS: Final = 20
_RECIPIENT: Final = ("account_id", "message_id", "id", "email", "queued_at")


@click.command("hold", cls=command.StoreCommand, params=[*SCOPE])
async def hold(context: services_context.Context, *, account: str | None, domain: str | None) -> output.Report:
    """Hold delivery: of all mail, of an account's mail, or of mail to a domain.

    A hold survives restarts, until 'postroad queue release'.
    """
    account_id, domain = await _scope(context, account, domain)
    is_new = await holds.hold(context, account_id=account_id, domain=domain)
    held = await holds.find(context, account_id=account_id, domain=domain)
    queued = sum(one.recipients for one in await holds.queued_counts(context, held))
    text = (
        f"{'Held' if is_new else f'Already held since {times.to_wire(held.held_at)}'}: {holds.scope(held)}; "
        f"{output.recipients(queued)} in the queue.\n"
        f"Attempts under way finish. To continue: postroad queue release{_options(held)}"
    )
    return output.Report(data={"hold": queue_texts.hold_view(held), "recipients": queued}, text=text)


@click.command("release", cls=command.StoreCommand, params=[*SCOPE])
@click.option("--list", "with_list", is_flag=True, help="List each recipient, and release nothing without --yes.")
@click.option("--yes", is_flag=True, help="Confirm that mail restored from a backup may be delivered twice.")
async def release(
    context: services_context.Context, *, account: str | None, domain: str | None, with_list: bool, yes: bool
) -> output.Report:
    """Release what 'postroad queue hold' or a restore holds.

    After a restore, what may be a duplicate is counted first, and --yes confirms the release.
    """
    account_id, domain = await _scope(context, account, domain)
    held = await holds.find(context, account_id=account_id, domain=domain)
    counts = await holds.queued_counts(context, held)
    in_doubt = held.in_doubt_before is not None and bool(counts)
    must_ask = (in_doubt or with_list) and not yes
    listed = [one async for one in holds.queued_recipients(context, held)] if with_list else []
    if not must_ask:
        await holds.release(context, held)
    total = sum(one.recipients for one in counts)
    lines = [f"{one.account_id}  {one.message_id}  {one.recipient_id}  {one.email}" for one in listed]
    if in_doubt:
        lines += _duplicates(held, counts, total)
    if must_ask:
        lines.append(f"Nothing was released. To release it: postroad queue release{_options(held)} --yes")
    else:
        lines.append(f"Released: {holds.scope(held)}; {output.recipients(total)} in the queue.")
    data = {
        "released": not must_ask,
        "hold": queue_texts.hold_view(held),
        "may_be_duplicates": in_doubt,
        "counts": [wire_fields.of(one, ("account_id", "domain", "recipients")) for one in counts],
        "recipients": [wire_fields.of(one, _RECIPIENT, id=one.recipient_id) for one in listed],
    }
    return output.Report(data=data, text="\n".join(lines), exit_code=1 if must_ask and not with_list else 0)


def _duplicates(held: stored_holds.Hold, counts: list[holds.QueuedCount], total: int) -> list[str]:
    rows = [(one.account_id, one.domain, one.recipients) for one in counts[:TOP_COUNTS]]
    more = [f"and {len(counts) - TOP_COUNTS} more domains; --list shows every recipient"][: len(counts) > TOP_COUNTS]
    return [
        f"{output.recipients(total)} may have been delivered already; {held.reason}.",
        output.table(("account", "domain", "recipients"), rows, empty=""),
        *more,
        "To cancel some of them first: postroad queue cancel --domain DOMAIN (or --account ACCOUNT, or ids) --yes",
    ]


async def _scope(context: services_context.Context, account: str | None, domain: str | None) -> tuple[str, str]:
    account_id = stored_holds.ALL if account is None else (await account_option.account(context, account)).id
    return account_id, stored_holds.ALL if domain is None else inspection.domain(domain)


def _options(held: stored_holds.Hold) -> str:
    """The options of the scope and of the installation, to repeat in a suggested command."""
    account = f" --account {held.account_id}" if held.account_id else ""
    domain = f" --domain {held.domain}" if held.domain else ""
    return f"{account}{domain}{command.installation_option()}"
