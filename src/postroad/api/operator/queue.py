"""`/v1/operator/queue`: what waits in all accounts, and the changes that an operator makes to it."""

from typing import Annotated, Any, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api.operator import jobs as api_jobs
from postroad.api.v1 import resource
from postroad.model.units import identifiers, times
from postroad.services.messages import queue_inspection
from postroad.services.operations import operator_jobs, operator_queue
from postroad.services.queue import holds
from postroad.storage.mail import delivery_controls, queue_views
from postroad.web import routing

RESOURCE: Final = resource.Resource("Queue")
QueueState = Literal["ready", "waiting", "scheduled", "sending", "held"]
AccountId = Annotated[str, resource.id_of(identifiers.ACCOUNT, "Only mail of this account.")]
Domain = Annotated[str, msgspec.Meta(max_length=255, description="Only mail to this recipient domain.")]


class QueueStates(msgspec.Struct, frozen=True, kw_only=True):
    """Recipients by state."""

    ready: int
    waiting: int
    scheduled: int
    sending: int
    held: int


class QueueAges(msgspec.Struct, frozen=True, kw_only=True):
    """Recipients by the time since they were queued."""

    under_1_minute: int
    under_10_minutes: int
    under_1_hour: int
    under_6_hours: int
    under_1_day: int
    over_1_day: int


class QueuedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What waits of an account."""

    account_id: str
    name: str | None
    recipients: int
    oldest_at: times.WireTime


class QueuedDomain(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for a recipient domain."""

    domain: str
    recipients: int


class QueuedCause(msgspec.Struct, frozen=True, kw_only=True):
    """Why recipients wait: the reason of their last attempt; empty without one."""

    provider_queue: str
    reason: str
    explanation: str
    recipients: int


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Recipients of mail that was accepted in this hour and the one before, in all accounts."""

    accepted: int
    delivered: int
    bounced: int
    failed: int
    deferred: Annotated[int, msgspec.Meta(description="Deferred attempts, which will be retried.")]


class QueueHold(msgspec.Struct, frozen=True, kw_only=True):
    """What is held; null stands for all."""

    account_id: str | None
    domain: str | None
    reason: str
    held_at: times.WireTime
    may_be_duplicates: Annotated[
        bool, msgspec.Meta(description="Restored from a backup: some of it may have been delivered already.")
    ]


class QueueNumbers(resource.Response, frozen=True, kw_only=True):
    """The queue in numbers, as of `counted_at`. `accounts` and `domains` are the largest, `causes` a sample."""

    counted_at: Annotated[
        times.WireTime | None,
        msgspec.Meta(description="Null while a very long queue is counted for the first time; ask again."),
    ]
    recipients: int
    states: QueueStates
    ages: QueueAges
    oldest_at: times.WireTime | None
    accounts: list[QueuedAccount]
    domains: list[QueuedDomain]
    causes: Annotated[
        list[QueuedCause],
        msgspec.Meta(description=f"Of up to {operator_queue.SAMPLE} waiting recipients that are due next."),
    ]
    holds: list[QueueHold]
    last_hours: Traffic


class QueuedRecipient(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient in the queue, and why it waits."""

    account_id: str
    message_id: str
    id: str
    email: str
    state: QueueState
    queued_at: times.WireTime
    due_at: times.WireTime
    attempt_count: int
    provider_queue: str | None
    last_smtp_code: int | None
    last_smtp_response: str | None
    why: str


class QueueListQuery(resource.PageQuery, frozen=True):
    """Filters and pagination of the queue."""

    cursor: Annotated[str, msgspec.Meta(max_length=200, description="`next_cursor` of the previous page.")] | None = (
        None
    )
    account_id: AccountId | None = None
    domain: Domain | None = None
    state: QueueState | None = None


class QueueList(resource.Response, frozen=True):
    """Recipients, in order of account and message."""

    recipients: list[QueuedRecipient]
    next_cursor: resource.NextCursor


class QueueSelection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which recipients: of an account, at a domain, both, or `all`."""

    account_id: AccountId | None = None
    domain: Domain | None = None
    all: Annotated[bool, msgspec.Meta(description="Everything that waits, in all accounts.")] | None = None
    dry_run: Annotated[bool, msgspec.Meta(description="Only count; nothing is changed.")] | None = None


class QueueAction(resource.Response, frozen=True, kw_only=True):
    """The count of a dry run, or the job that was started."""

    recipients: Annotated[int | None, msgspec.Meta(description="How many would be changed; null without `dry_run`.")]
    complete: Annotated[
        bool,
        msgspec.Meta(
            description="False when the queue is too long to be counted at once: `recipients` is then the number of "
            "the last count in the background, if it is known, whatever their state."
        ),
    ]
    job: api_jobs.Job | None


class HoldRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to hold: mail of an account, to a domain, both, or `all`."""

    account_id: AccountId | None = None
    domain: Domain | None = None
    all: Annotated[bool, msgspec.Meta(description="All mail of all accounts.")] | None = None
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class ReleaseRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which hold to release: exactly that of this account and domain, or of `all`."""

    account_id: AccountId | None = None
    domain: Domain | None = None
    all: Annotated[bool, msgspec.Meta(description="The hold of all mail.")] | None = None
    duplicates_accepted: (
        Annotated[bool, msgspec.Meta(description="Required after a restore, when mail may be delivered twice.")] | None
    ) = None


class Holds(resource.Response, frozen=True):
    """The holds in force, oldest first."""

    holds: list[QueueHold]


def hold_view(hold: delivery_controls.Hold) -> QueueHold:
    return resource.from_record(
        QueueHold,
        hold,
        account_id=hold.account_id or None,
        domain=hold.domain or None,
        may_be_duplicates=hold.in_doubt_before is not None,
    )


def recipient_view(entry: queue_inspection.QueueEntry) -> QueuedRecipient:
    row = entry.waiting
    return resource.from_record(
        QueuedRecipient, row, id=row.recipient_id, provider_queue=entry.provider_queue, why=entry.why
    )


async def _selection(
    ctx: context.Context, body: QueueSelection | HoldRequest | ReleaseRequest
) -> queue_views.Selection:
    return await operator_queue.select(ctx, account_id=body.account_id, domain=body.domain, everything=body.all)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List queued recipients of all accounts.

    In order of account and message. A page examines a bounded number of recipients, so it may have fewer than asked
    for, or none, before the end: continue until `next_cursor` is null.
    """
    query: QueueListQuery = request.query
    chosen = await operator_queue.narrow(ctx, account_id=query.account_id, domain=query.domain)
    found = await operator_queue.page(ctx, chosen, state=query.state or "", cursor=query.cursor, limit=query.rows)
    rows = [*map(recipient_view, found.rows)]
    return routing.Response(200, QueueList(rows, found.next_cursor, request_id=request.id))


async def list_holds(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List what is held."""
    return routing.Response(200, Holds([*map(hold_view, await holds.in_force(ctx))], request_id=request.id))


async def hold(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Hold delivery.

    Held recipients stay queued, on all hosts and over restarts, until they are released; they expire only if
    `expires_in` is over. Attempts under way finish. What is held already stays as it is.
    """
    body: HoldRequest = request.body
    chosen = await _selection(ctx, body)
    await holds.hold(ctx, account_id=chosen.account_id, domain=chosen.domain, reason=body.reason)
    return routing.Response(200, Holds([*map(hold_view, await holds.in_force(ctx))], request_id=request.id))


async def release(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Release a hold.

    What other holds cover stays held.
    """
    body: ReleaseRequest = request.body
    chosen = await _selection(ctx, body)
    accepted = bool(body.duplicates_accepted)
    await holds.release_named(ctx, account_id=chosen.account_id, domain=chosen.domain, duplicates_accepted=accepted)
    return routing.Response(200, Holds([*map(hold_view, await holds.in_force(ctx))], request_id=request.id))


def _numbers(found: operator_queue.Summary | None, request_id: str) -> QueueNumbers:
    if found is None:
        found = operator_queue.NOTHING
    oldest = min((total.queued_at for total in found.totals), default=None)
    return QueueNumbers(
        counted_at=times.optional_to_wire(found.at),
        recipients=found.recipients,
        states=QueueStates(**found.by_state()),
        ages=QueueAges(**found.by_age()),
        oldest_at=times.optional_to_wire(oldest),
        accounts=[
            QueuedAccount(
                account_id=account.account_id,
                name=found.names.get(account.account_id),
                recipients=account.recipients,
                oldest_at=times.to_wire(account.queued_at),
            )
            for account in found.accounts
        ],
        domains=[QueuedDomain(domain=domain, recipients=number) for domain, number in found.domains],
        causes=[
            QueuedCause(
                provider_queue=reason.provider_queue,
                reason=reason.reason,
                explanation=operator_queue.explain(reason),
                recipients=reason.recipients,
            )
            for reason in found.reasons
        ],
        holds=[*map(hold_view, found.holds)],
        last_hours=Traffic(
            accepted=sum(provider.recipients for provider in found.providers),
            delivered=sum(provider.delivered for provider in found.providers),
            bounced=sum(provider.bounced for provider in found.providers),
            failed=sum(provider.failed for provider in found.providers),
            deferred=sum(provider.deferred for provider in found.providers),
        ),
        request_id=request_id,
    )


def routes(summary: operator_queue.QueueSummary, jobs: operator_jobs.Jobs) -> tuple[resource.OperatorRoute, ...]:
    """The routes, with the numbers and the jobs of this process."""

    async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
        """Get the queue of all accounts in numbers.

        By state, age, account, domain and cause. They are counted in the background; a very long queue is counted
        less often.
        """
        return routing.Response(200, _numbers(await summary.read(ctx), request.id))

    async def act(ctx: context.Context, request: routing.Request, action: operator_queue.Action) -> routing.Response:
        body: QueueSelection = request.body
        chosen = await _selection(ctx, body)
        if body.dry_run:
            number, is_complete = await operator_queue.count(ctx, summary, action, chosen)
            counted = QueueAction(recipients=number, complete=is_complete, job=None, request_id=request.id)
            return routing.Response(200, counted)
        job = await operator_queue.start(ctx, jobs, action, chosen)
        started = QueueAction(recipients=None, complete=False, job=api_jobs.shown(ctx, job), request_id=request.id)
        return routing.Response(202, started)

    async def retry(ctx: context.Context, request: routing.Request) -> routing.Response:
        """Retry waiting recipients now.

        Starts a job, or counts with `dry_run`. Scheduled mail keeps its time.
        """
        return await act(ctx, request, "retry")

    async def cancel(ctx: context.Context, request: routing.Request) -> routing.Response:
        """Cancel recipients: they fail without further attempts.

        Starts a job, or counts with `dry_run`. Recipients that are being sent are left alone.
        """
        return await act(ctx, request, "cancel")

    async def expire(ctx: context.Context, request: routing.Request) -> routing.Response:
        """Expire recipients: they end as `expired` without further attempts, and their credits are refunded.

        Starts a job, or counts with `dry_run`. Recipients that are being sent are left alone.
        """
        return await act(ctx, request, "expire")

    responses: Any = {200: QueueAction, 202: QueueAction}
    changes = {"body": QueueSelection, "responses": responses, "errors": (errors.Conflict, errors.NotFound)}
    held = {"responses": {200: Holds}, "errors": (errors.Conflict, errors.NotFound)}
    route = resource.operator_route
    return (
        route(RESOURCE, "GET /v1/operator/queue", show, responses={200: QueueNumbers}),
        route(
            RESOURCE,
            "GET /v1/operator/queue/recipients",
            index,
            query=QueueListQuery,
            responses={200: QueueList},
            errors=(errors.NotFound,),
        ),
        route(RESOURCE, "POST /v1/operator/queue/retry", retry, **changes),
        route(RESOURCE, "POST /v1/operator/queue/cancel", cancel, **changes),
        route(RESOURCE, "POST /v1/operator/queue/expire", expire, **changes),
        route(RESOURCE, "GET /v1/operator/queue/holds", list_holds, responses={200: Holds}),
        route(RESOURCE, "POST /v1/operator/queue/hold", hold, body=HoldRequest, **held),
        route(RESOURCE, "POST /v1/operator/queue/release", release, body=ReleaseRequest, **held),
    )
