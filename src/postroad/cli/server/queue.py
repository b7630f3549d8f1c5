"""`postroad queue`: inspect, retry, cancel, hold and release queued recipients."""

from collections.abc import Sequence
from typing import Final

import click

from postroad import context as services_context
from postroad import errors
from postroad.cli.framework import command, output, server_command
from postroad.cli.server import queue_texts
from postroad.model.units import times
from postroad.services.messages import queue_inspection
from postroad.services.queue import holds
from postroad.storage.mail import delivery_controls as stored_holds
from postroad.storage.mail import queue_views

# The options of `_filter`.
FILTERS: Final = (
    click.Option(["--account"], metavar="ACCOUNT", help="Only recipients of this account, by id or unique name."),
    click.Option(["--domain"], metavar="DOMAIN", help="Only recipients at this domain."),
    click.Option(["--message"], metavar="MESSAGE_ID", help="Only the recipients of this message."),
)
IDS = click.argument("ids", nargs=-1, metavar="IDS")


@click.command("list", cls=command.StoreCommand, params=[*FILTERS])
@click.option("--state", type=click.Choice(queue_views.STATES), help="Only recipients in this state.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of rows.")
async def show_list(
    context: services_context.Context, *, state: str | None, limit: int, **filters: str | None
) -> output.Report:
    """List queued recipients, oldest first, with a summary.

    A recipient is ready, waiting, scheduled, sending or held.
    """
    chosen = await _filter(context, **filters)
    found = await queue_inspection.overview(context, chosen, state=state, limit=limit)
    return output.Report(data=queue_texts.overview_view(found), text=queue_texts.overview(found))


@click.command("show", cls=command.StoreCommand)
@click.argument("name", metavar="ID")
async def show(context: services_context.Context, name: str) -> output.Report:
    """Show a message or one recipient: its state, the reason, and every attempt."""
    found = await queue_inspection.trace(context, name)
    return output.Report(data=queue_texts.trace_view(found), text=queue_texts.trace(found))


@click.command("retry", cls=command.StoreCommand, params=[*FILTERS])
@IDS
@click.option("--all", "everything", is_flag=True, help="All waiting recipients.")
async def retry(
    context: services_context.Context, *, ids: tuple[str, ...], everything: bool, **filters: str | None
) -> output.Report:
    """Schedule the next attempt of waiting recipients now. It does not advance the retry schedule."""
    done = await queue_inspection.retry(context, await _selection(context, ids, filters, everything=everything))
    text = f"{output.recipients(done.changed)} scheduled for an attempt now."
    return output.Report(data={"retried": done.changed, "being_sent": done.held}, text=text + _skipped_note(done))


@click.command("cancel", cls=command.StoreCommand, params=[*FILTERS])
@IDS
@click.option("--yes", is_flag=True, help="Confirm the cancellation of more than one recipient.")
async def cancel(
    context: services_context.Context, *, ids: tuple[str, ...], yes: bool, **filters: str | None
) -> output.Report:
    """Cancel recipients: they fail without further attempts. Those being sent are skipped."""
    choices = await _selection(context, ids, filters)
    meant = (await queue_inspection.count(context, choices)).changed
    if meant > 1 and not yes:
        raise errors.InvalidRequest(f"this cancels {meant} recipients and cannot be undone; add --yes to confirm")
    done = await queue_inspection.cancel(context, choices)
    text = f"{output.recipients(done.changed)} canceled."
    return output.Report(data={"canceled": done.changed, "being_sent": done.held}, text=text + _skipped_note(done))


def _skipped_note(done: queue_inspection.QueueChange) -> str:
    return f" Skipped, because an attempt is in progress: {done.held}." if done.held else ""


async def _selection(
    context: services_context.Context, ids: Sequence[str], filters: dict[str, str | None], *, everything: bool = False
) -> list[queue_views.Filter]:
    """Exactly one kind of selection is required, so that no selection never means the whole queue."""
    ways = [bool(ids), any(one is not None for one in filters.values()), everything]
    if sum(ways) != 1:
        raise click.UsageError("Select recipients by id or by options, not both.")
    if ids:
        # An id given twice would be counted twice.
        return [await queue_inspection.filter_by_id(context, one) for one in dict.fromkeys(ids)]
    return [await _filter(context, **filters)]


async def _filter(
    context: services_context.Context, *, account: str | None, domain: str | None, message: str | None
) -> queue_views.Filter:
    account_id = None if account is None else (await command.named_account(context, account)).id
    if message is not None:
        found = await queue_inspection.filter_by_id(context, message)
        if found.recipient_id is not None:
            raise click.UsageError("--message: not a message id; it must start with em_")
        if account_id not in {None, found.account_id}:
            raise errors.NotFound(f"message {message} does not exist in this account")
        account_id = found.account_id
    return queue_views.Filter(
        account_id=account_id, message_id=message, domain=None if domain is None else queue_inspection.domain(domain)
    )


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
        "counts": [times.wire_fields(one, ("account_id", "domain", "recipients")) for one in counts],
        "recipients": [times.wire_fields(one, _RECIPIENT, id=one.recipient_id) for one in listed],
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
    account_id = stored_holds.HOLD_ALL if account is None else (await command.named_account(context, account)).id
    return account_id, stored_holds.HOLD_ALL if domain is None else queue_inspection.domain(domain)


def _options(held: stored_holds.Hold) -> str:
    """The options of the scope and of the installation, to repeat in a suggested command."""
    account = f" --account {held.account_id}" if held.account_id else ""
    domain = f" --domain {held.domain}" if held.domain else ""
    return f"{account}{domain}{server_command.installation_option()}"
