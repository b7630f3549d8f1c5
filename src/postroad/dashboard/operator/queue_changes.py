"""`/operator/queue/change`: retry, cancel, expire or hold a part of the queue, after a page that counts it first."""

from typing import Final, Literal

import msgspec

from postroad.dashboard import forms, requests, urls
from postroad.dashboard.operator import console, jobs, queue
from postroad.services.accounts import registry
from postroad.services.queue import holds, queue_jobs
from postroad.storage import queue_walks
from postroad.web import routing

PATH: Final = f"{queue.PATH}/change"
Action = Literal["retry", "hold", "cancel", "expire"]
ACTIONS: Final[tuple[Action, ...]] = ("retry", "hold", "cancel", "expire")


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do, and with which part of the queue; the form also sends empty fields."""

    action: Action | None = None
    account_id: str | None = None
    domain: str | None = None
    all: bool | None = None


class Confirmation(forms.Form, frozen=True, kw_only=True):
    """The same, confirmed. A hold has a reason."""

    action: Action
    account_id: str | None = None
    domain: str | None = None
    all: bool | None = None
    reason: str | None = None


async def ask(request: requests.PageRequest) -> routing.Response:
    """How many recipients it is, and what will happen; without a selection, the form for one."""
    query: Query = request.query
    action: Action = query.action or "retry"
    account_id, domain = queue.typed(query.account_id), queue.typed(query.domain)
    if not (account_id or domain or query.all):
        return request.page("operator/queue_change.html", chosen=None, action=action, actions=ACTIONS)
    chosen = await queue_jobs.select(request.ctx, account_id=account_id, domain=domain, everything=query.all)
    summary = request.site.operator_state.queue
    # What a hold keeps back is what a cancellation would end.
    counted: queue_jobs.Action = "cancel" if action == "hold" else action
    number, is_complete = await queue_jobs.count(request.ctx, summary, counted, chosen)
    selected = {"account_id": chosen.account_id, "domain": chosen.domain, "all": "true" if query.all else ""}
    return request.page(
        "operator/queue_change.html",
        chosen=chosen,
        selected_account=await registry.find(request.ctx, chosen.account_id) if chosen.account_id else None,
        action=action,
        actions=ACTIONS,
        tabs=[(one, urls.of(PATH, action=one, **selected)) for one in ACTIONS],
        number=number,
        is_complete=is_complete,
        selected=selected,
        list_url=urls.of(queue.RECIPIENTS, account_id=chosen.account_id, domain=chosen.domain),
    )


async def run(request: requests.PageRequest) -> routing.Response:
    """Hold it, or start the job."""
    form: Confirmation = request.form
    chosen = await queue_jobs.select(request.ctx, account_id=form.account_id, domain=form.domain, everything=form.all)
    if form.action == "hold":
        return await _hold(request, chosen, form.reason or "")
    job = await queue_jobs.start(request.ctx, request.site.operator_state.jobs, form.action, chosen)
    return request.redirect(f"{jobs.PATH}/{job.id}", notice="Started. This page shows the progress.")


async def _hold(request: requests.PageRequest, chosen: queue_walks.Selection, reason: str) -> routing.Response:
    is_new = await holds.hold(request.ctx, account_id=chosen.account_id, domain=chosen.domain, reason=reason)
    scope = queue_jobs.scope(chosen)
    notice = f"Held: {scope}." if is_new else f"Already held: {scope}."
    return request.redirect(queue.PATH, notice=notice)


ROUTES: Final = (
    console.get(PATH, ask, query=Query),
    console.post(PATH, run, form=Confirmation),
)
