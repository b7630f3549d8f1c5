"""`/operator/queue`: what waits in all accounts, what is held, and changes after a page that counts them."""

from typing import Final, Literal

import msgspec

from postroad.dashboard.framework import forms, navigation, requests
from postroad.dashboard.operator import console, jobs
from postroad.model.delivery import providers
from postroad.services.accounts import account_registry
from postroad.services.operations import operator_jobs, operator_queue
from postroad.services.queue import holds
from postroad.web import routing

PATH: Final = "/operator/queue"
RECIPIENTS: Final = f"{PATH}/recipients"
ROWS: Final = 50
# Rows of each table of the overview; the count has more.
LARGEST: Final = 15
JOBS: Final = 5
State = Literal["ready", "waiting", "scheduled", "sending", "held"]
STATES: Final[tuple[State, ...]] = ("ready", "waiting", "scheduled", "sending", "held")
AGES: Final = {
    "under_1_minute": "under 1 minute",
    "under_10_minutes": "1 to 10 minutes",
    "under_1_hour": "10 minutes to 1 hour",
    "under_6_hours": "1 to 6 hours",
    "under_1_day": "6 hours to 1 day",
    "over_1_day": "over 1 day",
}


class RecipientsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which recipients; the form also sends empty fields."""

    account_id: str | None = None
    domain: str | None = None
    state: State | Literal[""] | None = None
    cursor: str | None = None


class Release(forms.Form, frozen=True, kw_only=True):
    account_id: str | None = None
    domain: str | None = None
    duplicates_accepted: bool | None = None


def typed(text: str | None) -> str | None:
    """What was typed into a field, or None."""
    return (text or "").strip() or None


async def show(request: requests.PageRequest) -> routing.Response:
    """The queue in numbers, the holds, and the form that selects a part of it."""
    ctx = request.ctx
    counted = await request.site.operator_state.queue.read(ctx) or operator_queue.NOTHING
    ages = counted.by_age()
    started = [job for job in await operator_jobs.listed(ctx) if job.kind.startswith("queue.")]
    return request.page(
        "operator/queue.html",
        counted=counted,
        states=counted.by_state(),
        oldest_at=min((total.queued_at for total in counted.totals), default=None),
        ages=[(AGES[name], number) for name, number in ages.items()],
        accounts=counted.accounts[:LARGEST],
        domains=counted.domains[:LARGEST],
        causes=[(reason, operator_queue.explain(reason)) for reason in counted.reasons[:LARGEST]],
        sample=operator_queue.SAMPLE,
        title_of=providers.title_of,
        holds=await holds.in_force(ctx),
        jobs=jobs.job_rows(started[:JOBS], now=ctx.clock()),
    )


async def index(request: requests.PageRequest) -> routing.Response:
    """Recipients, in order of account and message, and why each waits."""
    query: RecipientsQuery = request.query
    account_id, domain = typed(query.account_id), typed(query.domain)
    chosen = await operator_queue.narrow(request.ctx, account_id=account_id, domain=domain)
    cursor = typed(query.cursor)
    found = await operator_queue.page(request.ctx, chosen, state=query.state or "", cursor=cursor, limit=ROWS)
    counted = request.site.operator_state.queue.last or operator_queue.NOTHING
    selected = {"account_id": chosen.account_id, "domain": chosen.domain}
    next_url = navigation.url(RECIPIENTS, **selected, state=query.state, cursor=found.next_cursor)
    return request.page(
        "operator/queue_recipients.html",
        entries=found.rows,
        names=counted.names,
        title_of=providers.title_of,
        chosen=chosen,
        state=query.state or "",
        states=STATES,
        is_first=cursor is None,
        is_filtered=bool(chosen.account_id or chosen.domain or query.state),
        next_url=next_url if found.next_cursor else "",
        change_url=navigation.url(f"{PATH}/change", **selected, all="" if any(selected.values()) else "true"),
    )


async def release(request: requests.PageRequest) -> routing.Response:
    form: Release = request.form
    held = await holds.release_named(
        request.ctx,
        account_id=form.account_id or "",
        domain=form.domain or "",
        duplicates_accepted=bool(form.duplicates_accepted),
    )
    return request.redirect(PATH, notice=f"Released: {holds.scope(held)}.")


ROUTES: Final = (
    console.get(PATH, show),
    console.get(RECIPIENTS, index, query=RecipientsQuery),
    console.post(f"{PATH}/release", release, form=Release),
)


CHANGE_PATH: Final = f"{PATH}/change"
Action = Literal["retry", "hold", "cancel", "expire"]
ACTIONS: Final[tuple[Action, ...]] = ("retry", "hold", "cancel", "expire")


class ChangeQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do, and with which part of the queue; the form also sends empty fields."""

    action: Action | None = None
    account_id: str | None = None
    domain: str | None = None
    all: bool | None = None


class Confirmation(forms.Form, frozen=True, kw_only=True):
    action: Action
    account_id: str | None = None
    domain: str | None = None
    all: bool | None = None
    reason: str | None = None


async def ask(request: requests.PageRequest) -> routing.Response:
    """How many recipients it is, and what will happen; without a selection, the form for one."""
    query: ChangeQuery = request.query
    action: Action = query.action or "retry"
    account_id, domain = typed(query.account_id), typed(query.domain)
    if not (account_id or domain or query.all):
        return request.page("operator/queue_change.html", chosen=None, action=action, actions=ACTIONS)
    chosen = await operator_queue.select(request.ctx, account_id=account_id, domain=domain, everything=query.all)
    # What a hold keeps back is what a cancellation would end.
    counted: operator_queue.Action = "cancel" if action == "hold" else action
    number, is_complete = await operator_queue.count(request.ctx, request.site.operator_state.queue, counted, chosen)
    selected = {"account_id": chosen.account_id, "domain": chosen.domain, "all": "true" if query.all else ""}
    return request.page(
        "operator/queue_change.html",
        chosen=chosen,
        selected_account=await account_registry.find(request.ctx, chosen.account_id) if chosen.account_id else None,
        action=action,
        actions=ACTIONS,
        tabs=[(choice, navigation.url(CHANGE_PATH, action=choice, **selected)) for choice in ACTIONS],
        number=number,
        is_complete=is_complete,
        selected=selected,
        list_url=navigation.url(RECIPIENTS, account_id=chosen.account_id, domain=chosen.domain),
    )


async def run(request: requests.PageRequest) -> routing.Response:
    form: Confirmation = request.form
    chosen = await operator_queue.select(
        request.ctx, account_id=form.account_id, domain=form.domain, everything=form.all
    )
    if form.action == "hold":
        is_new = await holds.hold(
            request.ctx, account_id=chosen.account_id, domain=chosen.domain, reason=form.reason or ""
        )
        scope = holds.scope(chosen)
        undo = request.undo(f"{PATH}/release", account_id=chosen.account_id, domain=chosen.domain) if is_new else ""
        return request.redirect(PATH, notice=f"Held: {scope}." if is_new else f"Already held: {scope}.", undo=undo)
    job = await operator_queue.start(request.ctx, request.site.operator_state.jobs, form.action, chosen)
    return request.redirect(f"{jobs.PATH}/{job.id}", notice="Started. This page shows the progress.")


CHANGE_ROUTES: Final = (
    console.get(CHANGE_PATH, ask, query=ChangeQuery),
    console.post(CHANGE_PATH, run, form=Confirmation),
)
