"""`/messages`: the message log with search, saved views, actions on all that a search finds, and `/tail`."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from postroad import context
from postroad.dashboard.framework import forms, navigation, requests, site, verdicts
from postroad.dashboard.mail import alerts, message_filters
from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.model.search import search_query
from postroad.services.messages import bulk_actions, export_csv, lookup, message_history, queue_inspection, saved_views
from postroad.storage.mail import delivery_controls, messages
from postroad.storage.mail import message_search as stored
from postroad.web import routing

SCHEDULED: Final = "scheduled"
# Of these, the reason is worth a line.
_UNDELIVERED: Final = (*statuses.FAILURES, statuses.RecipientStatus.DEFERRED)


class Row(msgspec.Struct, frozen=True):
    """A message, its badge, and the recipient that says most about it."""

    message: messages.Message
    badge: str
    email: str
    # In a few words, and in sentences; empty for what was delivered.
    reason: str
    explanation: str
    smtp_code: int | None


async def read_rows(ctx: context.Context, account_id: str, listed: Sequence[messages.Message]) -> list[Row]:
    async with ctx.store.reading() as tx:
        leading = await messages.leading_recipients(tx, account_id, [message.id for message in listed])
    return rows(listed, leading, now=ctx.clock())


def rows(
    listed: Sequence[messages.Message], leading: Mapping[str, messages.LeadingRecipient], *, now: int
) -> list[Row]:
    return [_row(message, leading.get(message.id), now=now) for message in listed]


def _row(message: messages.Message, recipient: messages.LeadingRecipient | None, *, now: int) -> Row:
    if recipient is None:  # removed meanwhile
        return Row(message, message.status, "", "", "", None)
    if recipient.status not in _UNDELIVERED:
        return Row(message, _badge(message, recipient, now=now), recipient.email, "", "", None)
    # What was never attempted, such as mail to a suppressed address, has only the text of the decision.
    reason = site.humanize(recipient.reason) if recipient.reason else recipient.last_smtp_response or ""
    explanation = disposition.explain(recipient.reason) if recipient.reason else reason
    return Row(
        message, _badge(message, recipient, now=now), recipient.email, reason, explanation, recipient.last_smtp_code
    )


def _badge(message: messages.Message, recipient: messages.LeadingRecipient, *, now: int) -> str:
    """The status of the message, or of its recipients where that says more."""
    if message.status == statuses.MessageStatus.FAILED:
        return recipient.status
    if message.status != statuses.MessageStatus.QUEUED:
        return message.status
    if message.send_at is not None and message.send_at > now and not recipient.attempt_count:
        return SCHEDULED
    return recipient.status if recipient.status == statuses.RecipientStatus.DEFERRED else message.status


class Chip(msgspec.Struct, frozen=True):
    name: str
    path: str
    is_current: bool


class SavedView(forms.Form, frozen=True, kw_only=True):
    name: str
    search: str


class RenamedView(forms.Form, frozen=True, kw_only=True):
    name: str


async def visible_views(request: requests.PageRequest) -> list[stored.SavedView]:
    """The views of the account that the user can open: those that search hidden content are left out."""
    async with request.ctx.store.reading() as tx:
        views = await stored.saved_views(tx, request.account_id)
    return [view for view in views if not request.hides_content or lookup.can_search_without_content(view.search)]


def chips(saved: Sequence[stored.SavedView], text: str) -> list[Chip]:
    """The views of the account, for the page of the search `text`."""
    return [Chip(view.name, navigation.messages_url(view.search), view.search == text) for view in saved]


async def save_view(request: requests.PageRequest) -> routing.Response:
    form: SavedView = request.form
    view = await saved_views.save(request.ctx, request.account_id, name=form.name, search=form.search)
    return request.redirect(navigation.messages_url(view.search), notice=f"View {view.name} saved.")


async def rename_view(request: requests.PageRequest) -> routing.Response:
    form: RenamedView = request.form
    name = await saved_views.rename(request.ctx, request.account_id, request.path["id"], form.name)
    return request.redirect(navigation.MESSAGES, notice=f"View renamed to {name}.")


async def remove_view(request: requests.PageRequest) -> routing.Response:
    view = await saved_views.remove(request.ctx, request.account_id, request.path["id"])
    undo = request.undo("/views", name=view.name, search=view.search)
    return request.redirect(navigation.MESSAGES, notice=f"View {view.name} removed.", undo=undo)


VIEW_ROUTES: Final = (
    requests.post("/views", save_view, form=SavedView),
    requests.post("/views/{id}/rename", rename_view, form=RenamedView),
    requests.post("/views/{id}/remove", remove_view),
)


EXPORT_PATH: Final = "/messages.csv"
ROWS: Final = 50
# Every file system takes so many characters.
MAX_FILE_NAME: Final = 100
# Of a search that finds nothing, so many terms are left out to see which one it was.
MAX_WAYS: Final = 5


class Way(msgspec.Struct, frozen=True):
    """A search that finds something, for one that found nothing: what it changes, and how much it finds."""

    text: str
    term: str
    path: str
    counted: str


async def index(request: requests.PageRequest) -> routing.Response:
    """A page of results, or what is wrong with the search; the form of the filters leads to the page of its search."""
    query: message_filters.Query = request.query
    if query != message_filters.Query(query.search, query.cursor):
        changed = message_filters.changed_search(query, now=request.ctx.clock(), zone=request.zone)
        return requests.redirect(request.http.headers, navigation.messages_url(changed))
    text = query.text
    views = await visible_views(request)
    try:
        found = await lookup.search(
            request.ctx, request.account_id, request.searched(text), limit=ROWS, cursor=query.cursor, zone=request.zone
        )
    except search_query.QueryError as problem:
        return _page(request, search_query.Query(), text=text, views=views, status=400, problem=problem)
    rows = await read_rows(request.ctx, request.account_id, request.shown(found.messages))
    counted = ""
    ways: Sequence[Way] = ()
    status_groups: message_filters.StatusGroups = message_filters.STATUSES
    if query.cursor is None:
        filters = lookup.filters_of(request.ctx, found.query, zone=request.zone)
        counted = in_words(found.count or await lookup.count(request.ctx, request.account_id, filters))
        status_groups = await message_filters.counted_statuses(
            request.ctx, request.account_id, found.query, zone=request.zone
        )
        if text and not rows and not found.next_cursor:
            ways = await _ways(request, found.query)
    return _page(
        request,
        found.query,
        text=text,
        views=views,
        found=found,
        rows=rows,
        counted=counted,
        ways=ways,
        status_groups=status_groups,
        pauses=await _pauses(request),
    )


async def _pauses(request: requests.PageRequest) -> Sequence[verdicts.Alert]:
    """What the operator holds or has paused, mostly nothing."""
    async with request.ctx.store.reading() as tx:
        held, changed = await delivery_controls.holds_in_force(tx), await delivery_controls.listed_overrides(tx)
    if not held and not any(override.paused for override in changed):
        return ()
    return list(alerts.pauses(request.account_id, await queue_inspection.conditions(request.ctx)))


def in_words(count: lookup.Count) -> str:
    """How many messages there are, as far as it is known."""
    return "1 message" if count == lookup.Count(1, is_exact=True) else f"{count} messages"


def _page(
    request: requests.PageRequest,
    query: search_query.Query,
    *,
    text: str,
    views: Sequence[stored.SavedView],
    status: int = 200,
    found: lookup.SearchPage | None = None,
    rows: Sequence[Row] = (),
    counted: str = "",
    ways: Sequence[Way] = (),
    status_groups: message_filters.StatusGroups = message_filters.STATUSES,
    pauses: Sequence[verdicts.Alert] = (),
    problem: search_query.QueryError | None = None,
) -> routing.Response:
    asked: message_filters.Query = request.query
    # On further pages something may wait.
    waits = (
        found is None or found.next_cursor or any(row.message.status == statuses.MessageStatus.QUEUED for row in rows)
    )
    actions = [one for one in BulkAction if waits or one not in (BulkAction.RETRY, BulkAction.CANCEL)]
    return request.page(
        "messages.html",
        status=status,
        views=views,
        chips=chips(views, text),
        max_name=saved_views.NAME_CHARACTERS,
        found=found,
        rows=rows,
        counted=counted,
        ways=ways,
        pauses=pauses,
        filters=message_filters.of_search(query, now=request.ctx.clock(), zone=request.zone),
        status_groups=status_groups,
        modes=message_filters.MODES,
        periods=message_filters.PERIODS,
        is_first=asked.cursor is None,
        bulk_urls=[(action.title(), navigation.bulk_url(action, text)) for action in actions],
        export_url=navigation.url(EXPORT_PATH, search=text),
        next_url=navigation.messages_url(text, found.next_cursor) if found and found.next_cursor else "",
        examples=[
            (name, finds, example, navigation.messages_url(example))
            for name, finds, example in search_query.HELP
            if not request.hides_content or lookup.can_search_without_content(example)
        ],
        **_search_values(text, problem),
    )


def _search_values(text: str, problem: search_query.QueryError | None) -> dict[str, object]:
    """What the list and the live log of a search have in common (pages/parts/message_search.html)."""
    return {
        "text": text,
        "list_url": navigation.messages_url(text),
        "log_url": navigation.url("/tail", search=text),
        "max_characters": search_query.MAX_CHARACTERS,
        "problem": problem.detail if problem else "",
        "parts": (text[: problem.start], text[problem.start : problem.end], text[problem.end :]) if problem else (),
    }


async def _ways(request: requests.PageRequest, query: search_query.Query) -> list[Way]:
    """How somebody who found nothing finds something."""
    others = [("Without", term, rest) for term, rest in islice(search_query.broader(query), MAX_WAYS)]
    if query.mode is None:
        others.append(("As test mail", "", dataclasses.replace(query, mode=statuses.Mode.TEST)))
    others = [("Did you mean", search_query.format(meant), meant) for meant in search_query.suggestions(query)] + others
    searches = [lookup.filters_of(request.ctx, other, zone=request.zone) for _, _, other in others]
    counts = await lookup.count_each(request.ctx, request.account_id, searches, examined=message_filters.MAX_COUNTED)
    return [
        Way(text, term, navigation.messages_url(search_query.format(other)), in_words(count))
        for (text, term, other), count in zip(others, counts, strict=True)
        if count.number
    ]


async def export_file(request: requests.PageRequest) -> routing.Response:
    asked: message_filters.SearchQuery = request.query
    text = asked.text
    filters = lookup.filters_of(request.ctx, search_query.parse(request.searched(text)), zone=request.zone)
    content = export_csv.export(request.ctx, request.account_id, filters, hides_content=request.hides_content)
    name = "-".join(["messages", *re.findall(r"[A-Za-z0-9]+", text)])[:MAX_FILE_NAME]
    return routing.attachment(f"{name}.csv", content)


ROUTES: Final = (
    requests.get(navigation.MESSAGES, index, query=message_filters.Query, is_live=True),
    requests.get(EXPORT_PATH, export_file, query=message_filters.SearchQuery, viewing=requests.Viewing.REFUSED),
)


BulkAction = bulk_actions.Action
# The button, what was done, and what is counted: one, and several.
BULK_WORDS: Final = {
    BulkAction.RETRY: ("Retry now", "Retrying {} now.", "recipient", "recipients"),
    BulkAction.CANCEL: ("Cancel messages", "Canceled: {}.", "recipient", "recipients"),
    BulkAction.RESEND: ("Resend", "Resent: {}.", "message", "messages"),
    BulkAction.SUPPRESS: ("Suppress addresses", "Suppressed: {}.", "address", "addresses"),
}


class BulkQuery(message_filters.SearchQuery, frozen=True, forbid_unknown_fields=True):
    action: BulkAction | None = None


class BulkConfirmation(forms.Form, frozen=True, kw_only=True):
    """The same, and when its count was seen, in microseconds."""

    action: BulkAction
    confirmed_at: int
    search: str | None = None


async def ask_about_bulk(request: requests.PageRequest) -> routing.Response:
    """How many messages or addresses it is, and what will happen."""
    query: BulkQuery = request.query
    action, text, now = query.action or BulkAction.RETRY, query.text, request.ctx.clock()
    selected = await bulk_actions.select(
        request.ctx, request.account_id, _bulk_filters(request, text, confirmed_at=now)
    )
    waiting = bulk_actions.waiting(selected)
    resendable = await bulk_actions.resendable(request.ctx, request.account_id, selected)
    suppressible = await bulk_actions.suppressible(request.ctx, request.account_id, selected)
    counts = {
        BulkAction.RETRY: len(waiting),
        BulkAction.CANCEL: len(waiting),
        BulkAction.RESEND: len(resendable),
        BulkAction.SUPPRESS: len(suppressible.rows),
    }
    return request.page(
        "bulk.html",
        action=action,
        actions=[
            (choice, BULK_WORDS[choice][0], navigation.bulk_url(choice, text))
            for choice in BulkAction
            if counts[choice]
        ],
        button=BULK_WORDS[action][0],
        text=text,
        found=len(selected),
        count=counts[action],
        suppressed=suppressible.suppressed,
        max_resent=bulk_actions.MAX_RESENT,
        confirmed_at=now,
        list_url=navigation.messages_url(text),
        pause=queue_inspection.retry_interval(request.ctx),
    )


async def run_bulk(request: requests.PageRequest) -> routing.Response:
    """Do it, and say how many were changed and how many were not."""
    form: BulkConfirmation = request.form
    text = (form.search or "").strip()
    filters = _bulk_filters(request, text, confirmed_at=form.confirmed_at)
    selected = await bulk_actions.select(request.ctx, request.account_id, filters)
    if form.action is BulkAction.RESEND:
        done = await bulk_actions.send_again(request.ctx, request.http.caller, selected, request_id=request.http.id)
    else:
        done = await bulk_actions.run(request.ctx, request.account_id, form.action, selected, search=text)
    kind = "good" if done.changed else "warn"
    return request.redirect(navigation.messages_url(text), notice=_notice(form.action, done), kind=kind)


def _bulk_filters(request: requests.PageRequest, text: str, *, confirmed_at: int) -> lookup.Filters:
    query = search_query.parse(text)
    return bulk_actions.filters_as_confirmed(request.ctx, query, confirmed_at=confirmed_at, zone=request.zone)


def _notice(action: BulkAction, done: bulk_actions.Report) -> str:
    _, sentence, singular, several = BULK_WORDS[action]
    changed = f"{done.changed:,} {singular if done.changed == 1 else several}"
    begin = sentence.format(changed) if done.changed else "Nothing was changed."
    others = ", ".join(f"{number:,} {reason}" for reason, number in done.unchanged.most_common() if number)
    return f"{begin} Not changed: {others}." if others else begin


BULK_ROUTES: Final = (
    requests.get(navigation.BULK, ask_about_bulk, query=BulkQuery, permission=callers.Permission.CHANGE),
    requests.post(navigation.BULK, run_bulk, form=BulkConfirmation),
)


async def show_tail(request: requests.PageRequest) -> routing.Response:
    """The newest events, oldest first; with a script, new ones are appended."""
    query: message_filters.SearchQuery = request.query
    text = query.text
    problem = None
    events: list[message_history.Event] = []
    try:
        found = await lookup.search(
            request.ctx,
            request.account_id,
            request.searched(text),
            limit=message_history.MAX_TAIL_MESSAGES,
            cursor=None,
            zone=request.zone,
        )
    except search_query.QueryError as error:
        problem = error
    else:
        found = dataclasses.replace(found, messages=request.shown(found.messages))
        events = await message_history.newest_events(request.ctx, request.account_id, found)
    return request.page(
        "tail.html",
        status=400 if problem else 200,
        events=events,
        **_search_values(text, problem),
    )


TAIL_ROUTES: Final = (requests.get("/tail", show_tail, query=message_filters.SearchQuery, is_live=True),)
