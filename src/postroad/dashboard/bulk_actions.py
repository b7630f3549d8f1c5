"""`/bulk`: retry, cancel, resend or suppress what a search finds, after a confirmation that shows how many it is."""

from typing import Final

from postroad.dashboard import forms, lists, requests, urls
from postroad.model import caller, search_query
from postroad.services.messages import bulk_actions, lookup
from postroad.services.queue import inspection
from postroad.web import routing

Action = bulk_actions.Action
# The button, what was done, and what is counted: one, and several.
WORDS: Final = {
    Action.RETRY: ("Retry now", "Retrying {} now.", "recipient", "recipients"),
    Action.CANCEL: ("Cancel messages", "Canceled: {}.", "recipient", "recipients"),
    Action.RESEND: ("Resend", "Resent: {}.", "message", "messages"),
    Action.SUPPRESS: ("Suppress addresses", "Suppressed: {}.", "address", "addresses"),
}


class Query(lists.SearchQuery, frozen=True, forbid_unknown_fields=True):
    """What to do, and with which messages."""

    action: Action | None = None


class Confirmation(forms.Form, frozen=True, kw_only=True):
    """The same, and when its count was seen, in microseconds."""

    action: Action
    confirmed_at: int
    search: str | None = None


async def ask(request: requests.PageRequest) -> routing.Response:
    """How many messages or addresses it is, and what will happen."""
    query: Query = request.query
    action, text, now = query.action or Action.RETRY, query.text, request.ctx.clock()
    selected = await bulk_actions.select(request.ctx, request.account_id, _filters(request, text, confirmed_at=now))
    waiting = bulk_actions.waiting(selected)
    resendable = await bulk_actions.resendable(request.ctx, request.account_id, selected)
    suppressible = await bulk_actions.suppressible(request.ctx, request.account_id, selected)
    counts = {
        Action.RETRY: len(waiting),
        Action.CANCEL: len(waiting),
        Action.RESEND: len(resendable),
        Action.SUPPRESS: len(suppressible.rows),
    }
    return request.page(
        "bulk.html",
        action=action,
        actions=[(one, WORDS[one][0], urls.bulk(one, text)) for one in Action if counts[one]],
        button=WORDS[action][0],
        text=text,
        found=len(selected),
        count=counts[action],
        suppressed=suppressible.suppressed,
        max_resent=bulk_actions.MAX_RESENT,
        confirmed_at=now,
        list_url=urls.messages(text),
        pause=inspection.retry_interval(request.ctx),
    )


async def run(request: requests.PageRequest) -> routing.Response:
    """Do it, and say how many were changed and how many were not."""
    form: Confirmation = request.form
    text = (form.search or "").strip()
    filters = _filters(request, text, confirmed_at=form.confirmed_at)
    selected = await bulk_actions.select(request.ctx, request.account_id, filters)
    if form.action is Action.RESEND:
        done = await bulk_actions.send_again(request.ctx, request.http.caller, selected, request_id=request.http.id)
    else:
        done = await bulk_actions.run(request.ctx, request.account_id, form.action, selected, search=text)
    kind = "good" if done.changed else "warn"
    return request.redirect(urls.messages(text), notice=_notice(form.action, done), kind=kind)


def _filters(request: requests.PageRequest, text: str, *, confirmed_at: int) -> lookup.Filters:
    query = search_query.parse(text)
    return bulk_actions.filters_as_confirmed(request.ctx, query, confirmed_at=confirmed_at, zone=request.zone)


def _notice(action: Action, done: bulk_actions.Report) -> str:
    _, sentence, one, several = WORDS[action]
    changed = f"{done.changed:,} {one if done.changed == 1 else several}"
    begin = sentence.format(changed) if done.changed else "Nothing was changed."
    others = ", ".join(f"{number:,} {reason}" for reason, number in done.unchanged.most_common() if number)
    return f"{begin} Not changed: {others}." if others else begin


ROUTES: Final = (
    requests.get(urls.BULK, ask, query=Query, permission=caller.Permission.CHANGE),
    requests.post(urls.BULK, run, form=Confirmation),
)
