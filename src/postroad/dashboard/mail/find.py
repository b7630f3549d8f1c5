"""`/find`: actions, pages, messages, recipients, domains, templates and settings by what is typed; Ctrl-K shows it too.

Every kind is looked up within a bound: `MAX_RESULTS` are shown of `EXAMINED` entries, so a key press costs little
however much an account has. Nothing but what belongs to the account and is open to the role is looked at.
"""

import contextlib
import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard.framework import navigation, requests
from postroad.dashboard.mail import message_list
from postroad.model.search import search_query, search_values
from postroad.model.units import identifiers
from postroad.services import request_log
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import lookup
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.web import routing

PATH: Final = "/find"
MAX_CHARACTERS: Final = 200
# Of each kind: what fits on a screen; a longer text finds the others.
MAX_RESULTS: Final = 5
# Messages, domains and templates that are looked at.
EXAMINED: Final = 1_000
# The beginning of an id without its prefix. Fewer digits might be a word, as in the search box.
_ID_DIGITS: Final = re.compile(r"[0-9a-f]{6,28}")


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    q: str | None = None


class Result(msgspec.Struct, frozen=True):
    """A link, and what distinguishes it from others of its kind."""

    path: str
    text: str
    detail: str = ""


class Group(msgspec.Struct, frozen=True):
    title: str
    results: list[Result]


async def index(request: requests.PageRequest) -> routing.Response:
    """Everything that matches, by kind; without a text what can be done, or for readers the pages."""
    query: Query = request.query
    text = " ".join((query.q or "").split())[:MAX_CHARACTERS]
    pages = Group("Pages", _places(request, (*_menu(request), *navigation.ELSEWHERE), text))
    actions = Group("Actions", _places(request, navigation.ACTIONS if request.view is None else (), text))
    groups = [actions, pages] if text or not actions.results else [actions]
    if text:
        recipients = Group("Recipients", await _recipients(request, text))
        messages = Group("Messages", await _messages(request, text, has_recipients=bool(recipients.results)))
        mail = [messages, Group("Views", await _views(request, text))]
        # Whoever types an address, or what only addresses begin with, means a recipient, whose page has the messages.
        groups += [recipients, *mail] if "@" in text or len(messages.results) == 1 else [*mail, recipients]
        groups += [
            Group("Domains", await _domains(request, text)),
            Group("Templates", await _templates(request, text)),
            Group("Requests", await _requests(request, text)),
        ]
        # The settings of an operator who views an account are not those of its users.
        groups.append(Group("Settings", _places(request, navigation.SETTINGS if request.view is None else (), text)))
    return request.page("find.html", q=text, groups=[group for group in groups if group.results], limit=MAX_CHARACTERS)


def _menu(request: requests.PageRequest) -> list[navigation.Entry]:
    """The entries of both menus; each has the way to the other one, which is left out."""
    found: dict[str, navigation.Entry] = {}
    for _, entries in request.menu((*navigation.SECTIONS, *navigation.OPERATOR_SECTIONS)):
        for entry in entries:
            found.setdefault(entry.path, entry)
    return list(found.values())


def _places(request: requests.PageRequest, entries: Iterable[navigation.Entry], text: str) -> list[Result]:
    allowed = (entry for entry in entries if request.may(entry.permission))
    return [Result(entry.path, entry.text) for entry in allowed if navigation.matches(entry, text)]


async def _messages(request: requests.PageRequest, text: str, *, has_recipients: bool) -> list[Result]:
    """The newest messages that the search box would find, and last the way there."""
    search = f"{identifiers.MESSAGE}{text}" if _ID_DIGITS.fullmatch(text) else text
    found = await _search(request, search)
    if found is None:
        return []
    rows = await message_list.read_rows(request.ctx, request.account_id, request.shown(found.messages))
    results = [
        Result(
            f"{navigation.MESSAGES}/{row.message.id}",
            row.message.subject or "No subject",
            f"{row.badge}, to {row.email}",
        )
        for row in rows
    ]
    if not rows:
        # The beginning of addresses that there are, or else a domain.
        meant = (one for one in search_query.suggestions(found.query) if (one.to or "").endswith("*") == has_recipients)
        search = next(map(search_query.format, meant), search)
    return [*results, Result(navigation.messages_url(search), f"Search messages: {search}")]


async def _search(request: requests.PageRequest, text: str) -> lookup.SearchPage | None:
    """Messages, or None where the text is no search, or not yet."""
    with contextlib.suppress(search_query.QueryError):
        return await lookup.search(
            request.ctx,
            request.account_id,
            request.searched(text),
            limit=MAX_RESULTS,
            cursor=None,
            examined=EXAMINED,
            zone=request.zone,
        )
    return None


async def _views(request: requests.PageRequest, text: str) -> list[Result]:
    views = await message_list.visible_views(request)
    found = (view for view in views if text.lower() in view.name.lower())
    return [Result(navigation.messages_url(view.search), view.name, view.search) for view in islice(found, MAX_RESULTS)]


async def _recipients(request: requests.PageRequest, text: str) -> list[Result]:
    """Addresses that begin so: of the newest messages, then of the suppression list."""
    beginning = text.lower()
    found = await _search(request, f"to:{text}*")
    if found is None:
        return []
    written = await lookup.recipients_of(request.ctx, request.account_id, found.messages)
    emails = {recipient.email.lower(): "" for sent in written.values() for recipient in sent}
    listed = await suppressions.page(request.ctx, request.account_id, after=beginning, limit=MAX_RESULTS)
    emails |= {suppression.email_key: "suppressed" for suppression in listed}
    if search_values.is_address(beginning):
        emails |= dict.fromkeys(await suppressions.listed(request.ctx, request.account_id, [beginning]), "suppressed")
    matching = ((email, detail) for email, detail in emails.items() if email.startswith(beginning))
    return [Result(navigation.recipient_url(email), email, detail) for email, detail in islice(matching, MAX_RESULTS)]


async def _domains(request: requests.PageRequest, text: str) -> list[Result]:
    known = await domains.of_account(request.ctx, request.account_id, limit=EXAMINED)
    found = (domain for domain in known if text.lower() in domain.name)
    return [Result(f"/domains/{domain.id}", domain.name) for domain in islice(found, MAX_RESULTS)]


async def _templates(request: requests.PageRequest, text: str) -> list[Result]:
    if not request.may(requests.CONTENT):
        return []
    known = await templates.summaries(request.ctx, request.account_id, "", EXAMINED, is_published=False)
    found = (
        summary for summary in known if text.lower() in summary.alias.lower() or text.lower() in summary.subject.lower()
    )
    return [
        Result(f"/templates/{summary.alias}", summary.alias, summary.subject) for summary in islice(found, MAX_RESULTS)
    ]


async def _requests(request: requests.PageRequest, text: str) -> list[Result]:
    """The request of an error, by its id."""
    with contextlib.suppress(errors.NotFound):
        found = await request_log.find(request.ctx, request.account_id, text)
        return [Result(f"/requests/{found.id}", f"{found.method} {found.path}", f"{found.status} {found.code}".strip())]
    return []


ROUTES: Final = (requests.get(PATH, index, query=Query),)
