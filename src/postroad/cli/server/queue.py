"""`postroad queue`: inspect, retry, cancel, hold and release queued recipients.

They ask the services, and print the API's views. `/v1/operator/queue` is made for a console that must not wait: it has
samples and jobs where these commands have exact numbers, single recipients and a result, and a restored hold is
released there without the list of what may be delivered twice.
"""

from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec

from postroad import context as services_context
from postroad import errors
from postroad.api.operator import queue as api_queue
from postroad.cli.framework import command, local_server, output, server_command
from postroad.model.bounces import disposition
from postroad.model.units import labels, times
from postroad.services.messages import queue_inspection
from postroad.services.queue import holds, wait_reasons
from postroad.storage.mail import attempts, queue_views
from postroad.storage.mail import delivery_controls as stored_holds

View = dict[str, Any]

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
    return output.Report(data=overview_view(found), text=overview(found))


@click.command("show", cls=server_command.HostCommand)
@click.argument("name", metavar="ID")
def show(server: local_server.LocalServer, name: str) -> output.Report:
    """Show a message or one recipient: its state, the reason, and every attempt."""
    found = server.ask(lambda ctx: queue_inspection.trace(ctx, name))
    server.act_in(found.message.account_id)
    message = server.owned(server.get(f"/v1/messages/{found.message.id}"))
    chosen = {course.recipient.id for course in found.courses}
    for member, key in (("recipients", "id"), ("attempts", "recipient_id"), ("async_bounces", "recipient_id")):
        message[member] = [entry for entry in message[member] if entry[key] in chosen]
    return output.Report(data={"message": message}, text=trace(found))


@click.command("retry", cls=command.StoreCommand, params=[*FILTERS])
@IDS
@click.option("--all", "everything", is_flag=True, help="All waiting recipients.")
async def retry(
    context: services_context.Context, *, ids: tuple[str, ...], everything: bool, **filters: str | None
) -> output.Report:
    """Retry waiting recipients now. This does not use up a step of the retry schedule."""
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
    ways = [bool(ids), any(value is not None for value in filters.values()), everything]
    if sum(ways) != 1:
        raise click.UsageError("Select recipients by id or by options, not both.")
    if ids:
        # An id given twice would be counted twice.
        return [await queue_inspection.filter_by_id(context, name) for name in dict.fromkeys(ids)]
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
        account_id=account_id,
        message_id=message,
        domain=None if domain is None else labels.parse_domain("domain", domain),
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
    queued = sum(count.recipients for count in await holds.queued_counts(context, held))
    text = (
        f"{'Held' if is_new else f'Already held since {times.to_wire(held.held_at)}'}: {holds.scope(held)}; "
        f"{output.recipients(queued)} in the queue.\n"
        f"Attempts under way finish. To continue: postroad queue release{_options(held)}"
    )
    return output.Report(data={"hold": api_queue.hold_view(held), "recipients": queued}, text=text)


@click.command("release", cls=command.StoreCommand, params=[*SCOPE])
@click.option("--list", "with_list", is_flag=True, help="List each recipient, and release nothing without --yes.")
@click.option("--yes", is_flag=True, help="Confirm that mail restored from a backup may be delivered twice.")
async def release(
    context: services_context.Context, *, account: str | None, domain: str | None, with_list: bool, yes: bool
) -> output.Report:
    """Release what 'postroad queue hold' or a restore holds.

    After a restore, it only counts possible duplicates; run it again with --yes to release.
    """
    account_id, domain = await _scope(context, account, domain)
    held = await holds.find(context, account_id=account_id, domain=domain)
    counts = await holds.queued_counts(context, held)
    in_doubt = held.in_doubt_before is not None and bool(counts)
    must_ask = (in_doubt or with_list) and not yes
    listed = [recipient async for recipient in holds.queued_recipients(context, held)] if with_list else []
    if not must_ask:
        await holds.release(context, held)
    total = sum(count.recipients for count in counts)
    lines = [
        f"{recipient.account_id}  {recipient.message_id}  {recipient.recipient_id}  {recipient.email}"
        for recipient in listed
    ]
    if in_doubt:
        lines += _duplicates(held, counts, total)
    if must_ask:
        lines.append(f"Nothing was released. To release it: postroad queue release{_options(held)} --yes")
    else:
        lines.append(f"Released: {holds.scope(held)}; {output.recipients(total)} in the queue.")
    data = {
        "released": not must_ask,
        "hold": api_queue.hold_view(held),
        "may_be_duplicates": in_doubt,
        "counts": [times.wire_fields(count, ("account_id", "domain", "recipients")) for count in counts],
        "recipients": [times.wire_fields(recipient, _RECIPIENT, id=recipient.recipient_id) for recipient in listed],
    }
    return output.Report(data=data, text="\n".join(lines), exit_code=1 if must_ask and not with_list else 0)


def _duplicates(held: stored_holds.Hold, counts: list[holds.QueuedCount], total: int) -> list[str]:
    rows = [(count.account_id, count.domain, count.recipients) for count in counts[:TOP_COUNTS]]
    more = [f"and {len(counts) - TOP_COUNTS} more domains; --list shows every recipient"][: len(counts) > TOP_COUNTS]
    return [
        f"{output.recipients(total)} may have been delivered already; {held.reason}.",
        output.table(("account", "domain", "recipients"), rows, empty=""),
        *more,
        "To cancel some of them first: postroad queue cancel --domain DOMAIN (or --account ACCOUNT, or ids) --yes",
    ]


async def _scope(context: services_context.Context, account: str | None, domain: str | None) -> tuple[str, str]:
    account_id = stored_holds.HOLD_ALL if account is None else (await command.named_account(context, account)).id
    return account_id, stored_holds.HOLD_ALL if domain is None else labels.parse_domain("domain", domain)


def _options(held: stored_holds.Hold) -> str:
    """The options of the scope and of the installation, to repeat in a suggested command."""
    account = f" --account {held.account_id}" if held.account_id else ""
    domain = f" --domain {held.domain}" if held.domain else ""
    return f"{account}{domain}{server_command.installation_option()}"


# The output, as text and as JSON.

_QUEUE_TITLES: Final = ("recipient", "address", "state", "attempts", "next attempt", "provider queue", "reason")
# States whose next attempt has a time.
_LATER: Final = (queue_views.WAITING, queue_views.SCHEDULED)


def overview(found: queue_inspection.Overview) -> str:
    rows = [
        (
            line.waiting.recipient_id,
            line.waiting.email,
            line.waiting.state,
            line.waiting.attempt_count,
            _next_attempt(line.waiting, now=found.now),
            line.provider_queue,
            _reason(line),
        )
        for line in found.entries
    ]
    total = sum(count.recipients for count in found.counts.values())
    held = "".join(
        f"\nHeld: {holds.scope(hold)}, since {times.to_wire(hold.held_at)}: {hold.reason}." for hold in found.holds
    )
    if not total:
        return f"The queue is empty.{held}"
    listed = output.table(_QUEUE_TITLES, rows, empty="No recipients are in this state.")
    by_state = ", ".join(f"{_number(found, state)} {state}" for state in queue_views.STATES)
    oldest = min(count.queued_at for count in found.counts.values())
    busiest = ", ".join(f"{domain} {number}" for domain, number in found.domains)
    return (
        f"{listed}\n\n{output.recipients(total)}: {by_state}.\n"
        f"Oldest: queued at {times.to_wire(oldest)}, {times.relative_time(oldest, now=found.now)}.\n"
        f"Top domains: {busiest}{held}"
    )


def overview_view(found: queue_inspection.Overview) -> View:
    oldest = min((count.queued_at for count in found.counts.values()), default=None)
    shown = {
        "recipients": [*map(api_queue.recipient_view, found.entries)],
        "counts": {state: _number(found, state) for state in queue_views.STATES},
        "oldest_queued_at": times.optional_to_wire(oldest),
        "domains": [api_queue.QueuedDomain(domain=domain, recipients=number) for domain, number in found.domains],
        "holds": [*map(api_queue.hold_view, found.holds)],
    }
    view: View = msgspec.to_builtins(shown)
    return view


def trace(found: queue_inspection.MessageTrace) -> str:
    message = found.message
    head = (
        f"Message {message.id} of account {message.account_id}\n"
        f"  from {message.sender}, {message.subject!r}, {message.size} bytes, by {message.source}\n"
        f"  accepted at {times.to_wire(message.created_at)}, "
        f"{times.relative_time(message.created_at, now=found.now)}; "
        f"{message.status}, {output.recipients(message.recipient_count)}; "
        f"request {message.request_id}"
    )
    return "\n\n".join([head, *(_recipient_trace(recipient_trace) for recipient_trace in found.courses)])


def _number(found: queue_inspection.Overview, state: str) -> int:
    return found.counts[state].recipients if state in found.counts else 0


def _reason(line: queue_inspection.QueueEntry) -> str:
    """The last reply says most, unless the recipient is held."""
    row = line.waiting
    reply = wait_reasons.last_response(row.last_smtp_code, row.last_smtp_response)
    return line.why if row.state == queue_views.HELD else reply or line.why


def _next_attempt(row: queue_views.QueuedRecipient, *, now: int) -> str:
    if row.state == queue_views.HELD:
        return "after the hold"
    if row.state not in _LATER:
        return "now"
    return f"{times.to_wire(row.due_at)} ({times.relative_time(row.due_at, now=now)})"


def _recipient_trace(recipient_trace: queue_inspection.RecipientTrace) -> str:
    recipient = recipient_trace.recipient
    lines = [
        f"{recipient.id} {recipient.email}: {recipient.status}",
        f"  {recipient_trace.why}",
    ]
    if recipient_trace.line and recipient_trace.line.waiting.lost_leases:
        lines.append(
            f"  lease lost during an attempt ({recipient_trace.line.waiting.lost_leases} times): "
            "the message may have been delivered twice"
        )
    for number, attempt in enumerate(recipient_trace.attempts, start=1):
        lines += _attempt(number, attempt)
    lines += [
        f"  asynchronous bounce at {times.to_wire(report.received_at)}: {f'{report.action} {report.status}'.strip()}, "
        f"{wait_reasons.shortened(report.response)}"
        for report in recipient_trace.async_bounces
    ]
    return "\n".join(lines)


def _attempt(number: int, attempt: attempts.Attempt) -> list[str]:
    where = f"{attempt.host} [{attempt.address}]" if attempt.host else "no host"
    provider, encryption = attempt.provider_queue or "-", attempt.tls or "no TLS"
    source = f", from {attempt.source}" if attempt.source else ""
    fault = f", fault: {attempt.fault}" if attempt.fault else ""
    doubt = "; in doubt: the server may have accepted the message" if attempt.in_doubt else ""
    when = f"{times.to_wire(attempt.started_at)}, {attempt.duration / 1_000_000:.3f} s"
    lines = [
        f"  {times.ordinal(number)} attempt at {when}, to {where}{source}, provider queue {provider}, {encryption}",
        f"    {attempt.stage}: {wait_reasons.last_response(attempt.smtp_code, attempt.response)}",
        f"    {attempt.verdict} ({attempt.reason}{fault}){doubt}",
    ]
    return lines if attempt.fault is None else [*lines, f"    {disposition.explain(attempt.reason)}"]
