"""`/received`: mail that the routes of the account received, one message, and the routes."""

from typing import Final, Literal

import msgspec

from postroad import errors
from postroad.dashboard.framework import forms, lists, navigation, requests
from postroad.dashboard.mail import previews
from postroad.model.domains import domain_records
from postroad.model.events import events
from postroad.model.units import identifiers
from postroad.services.domains import domain_registry as domains
from postroad.services.inbound import event_data, received, routes
from postroad.storage.mail import received as stored
from postroad.web import routing

PATH: Final = "/received"
ROUTES_PATH: Final = f"{PATH}/routes"
ROWS: Final = 50
# Of an account; more routes are not offered as filters.
MAX_FILTERS: Final = 100
# Leaves the mailboxes of the domain where they are.
SUBDOMAIN: Final = "in"

Preset = Literal["all", "one", "tags"]
PRESETS: Final[dict[Preset, str]] = {
    "all": "All addresses of a domain",
    "one": "One address",
    "tags": "One address and its +tags",
}
ACTIONS: Final = {
    stored.Action.STORE: "Keep it here",
    stored.Action.FORWARD: "Forward it",
    stored.Action.DROP: "Discard it",
}


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the list. The form also sends empty fields."""

    search: str | None = None
    route: str | None = None
    before: str | None = None


class RoutesQuery(lists.Query, frozen=True, forbid_unknown_fields=True):
    """`checked` is a route whose MX record is looked up."""

    checked: str | None = None


class NewRoute(forms.Form, frozen=True, kw_only=True):
    preset: Preset
    name: str | None = None
    domain: str
    action: stored.Action
    forward_to: str | None = None

    @property
    def match(self) -> str:
        domain = self.domain.strip().lstrip("@")
        if self.preset == "all":
            return f"*@{domain}"
        if not self.name:
            raise errors.InvalidRequest("name: enter the part before the @, such as support")
        return f"{self.name.strip()}{'+*' if self.preset == 'tags' else ''}@{domain}"


class Verdict(msgspec.Struct, frozen=True):
    """The authentication of a message: two words with the color of a status, and a sentence."""

    word: str
    tone: str
    sentence: str


class Row(msgspec.Struct, frozen=True):
    mail: stored.Received
    verdict: Verdict


def verdict(mail: stored.Received) -> Verdict:
    """The one thing that a list says about the sender of a message."""
    spam, dmarc = event_data.spam(mail), event_data.authentication(mail).dmarc
    if spam is not None and spam.is_spam:
        return Verdict("spam", "wrong", _spam_score(spam))
    if dmarc.result == "pass":
        return Verdict("DMARC passed", "verified", f"Authenticated as {dmarc.domain}.")
    return Verdict("not authenticated", "unverified", _DMARC[dmarc.result].format(dmarc=dmarc))


_DMARC: Final = {
    "fail": "DMARC failed: not authenticated as {dmarc.domain}.",
    "none": "{dmarc.domain} has no DMARC record.",
    "temperror": "DMARC could not be checked, because DNS failed.",
    "permerror": "DMARC could not be checked: {dmarc.reason}.",
}
# Where DMARC failed: the policy of the domain.
_POLICIES: Final = {
    "none": " Its policy is none: it only requests reports.",
    "quarantine": " Its policy is quarantine: treat such mail as spam.",
    "reject": " Its policy is reject: refuse such mail.",
}


class Finding(msgspec.Struct, frozen=True):
    """A sentence about who sent a message; `tone` is good, warn, bad or empty."""

    sentence: str
    tone: str = ""


def findings(mail: stored.Received) -> list[Finding]:
    """The results of authentication, in words; first DMARC, which follows from the others."""
    results, spam = event_data.authentication(mail), event_data.spam(mail)
    dmarc, spf = results.dmarc, results.spf
    if dmarc.result == "pass":
        aligned = " and ".join(method.upper() for method in dmarc.aligned_by)
        found = [Finding(f"DMARC passed for {dmarc.domain}: aligned by {aligned}.", "good")]
    else:
        policy = _POLICIES.get(dmarc.policy, "") if dmarc.result == "fail" else ""
        sentence = _DMARC[dmarc.result].format(dmarc=dmarc) + policy
        found = [Finding(sentence, "bad" if dmarc.result == "fail" else "warn")]
    found.append(Finding(f"SPF {_past(spf.result)} for {spf.domain or 'an empty name'}.", _tone(spf.result)))
    for signature in results.dkim:
        because = f": {signature.reason}" if signature.reason else ""
        domain = signature.domain or "an unknown domain"
        found.append(Finding(f"DKIM {_past(signature.result)} for {domain}{because}.", _tone(signature.result)))
    found += [] if results.dkim else [Finding("No DKIM signature.")]
    if results.arc.result != "none":
        sealers = f", sealed by {', '.join(results.arc.sealers)}" if results.arc.sealers else ""
        found.append(Finding(f"ARC {_past(results.arc.result)}{sealers}.", _tone(results.arc.result)))
    if spam is not None:
        found.append(Finding(_spam_score(spam), "bad" if spam.is_spam else "good"))
    return found


def _spam_score(spam: events.ReceivedSpam) -> str:
    return f"SpamAssassin score {spam.score:g}; spam from {spam.required:g}."


_WORDS: Final = {"pass": "passed", "fail": "failed"}


def _past(result: str) -> str:
    return _WORDS.get(result, f"returned {result}")


def _tone(result: str) -> str:
    return {"pass": "good", "fail": "bad", "softfail": "warn"}.get(result, "")


async def index(request: requests.PageRequest) -> routing.Response:
    query: Query = request.query
    search = (query.search or "").strip()[: received.SEARCH_CHARACTERS]
    listed = await received.page(
        request.ctx,
        request.account_id,
        limit=ROWS,
        cursor=query.before,
        route_id=query.route or None,
        search=search,
    )
    known = await routes.of_account(request.ctx, request.account_id, limit=MAX_FILTERS)
    following = listed.next_cursor
    return request.page(
        "received.html",
        rows=[Row(mail, verdict(mail)) for mail in listed.rows],
        routes={route.id: route for route in known},
        search=search,
        route=query.route or "",
        max_characters=received.SEARCH_CHARACTERS,
        is_newest=query.before is None,
        is_first=not (search or query.route or query.before),
        next_url=navigation.url(PATH, search=search, route=query.route, before=following) if following else "",
    )


async def show(request: requests.PageRequest) -> routing.Response:
    query: previews.Query = request.query
    ctx, account_id, received_id = request.ctx, request.account_id, request.path["id"]
    mail = await received.find(ctx, account_id, received_id)
    shown = None
    if mail.has_body:
        async with ctx.previews.hold(account_id):
            raw = await received.raw(ctx, account_id, received_id)
            shown = await previews.preview_page(request, f"{PATH}/{received_id}", raw, query)
    return request.page(
        "received_message.html",
        mail=mail,
        shown=shown,
        verdict=verdict(mail),
        findings=findings(mail),
        route=await _route(request, mail),
    )


async def _route(request: requests.PageRequest, mail: stored.Received) -> stored.Route | None:
    """The route that received a message, unless it was removed."""
    try:
        return await routes.find(request.ctx, request.account_id, mail.route_id)
    except errors.NotFound:
        return None


async def remove(request: requests.PageRequest) -> routing.Response:
    await received.remove(request.ctx, request.account_id, request.path["id"])
    return request.redirect(PATH, notice="Message deleted.")


async def _content(request: requests.PageRequest) -> bytes:
    return await received.raw(request.ctx, request.account_id, request.path["id"])


class RouteRow(msgspec.Struct, frozen=True):
    """A route, what becomes of its mail, and the MX record of its domain; `check` is what DNS has, if it was asked."""

    route: stored.Route
    does: str
    mx: domain_records.Record
    check: routes.CheckedRoute | None


async def list_routes(request: requests.PageRequest) -> routing.Response:
    query: RoutesQuery = request.query
    listed = await lists.page(request, routes.of_account, prefix=identifiers.INBOUND_ROUTE)
    own = await domains.of_account(request.ctx, request.account_id, limit=MAX_FILTERS)
    verified = [domain.name for domain in own if domain.verified_at is not None]
    return request.page(
        "received_routes.html",
        rows=[
            RouteRow(
                route,
                _does(route),
                await routes.record(request.ctx, route),
                await routes.check(request.ctx, request.account_id, route.id) if route.id == query.checked else None,
            )
            for route in listed.rows
        ],
        listed=listed,
        presets=PRESETS,
        actions=ACTIONS,
        suggested_domain=f"{SUBDOMAIN}.{verified[0]}" if verified else "",
    )


def _does(route: stored.Route) -> str:
    match route.action:
        case stored.Action.FORWARD:
            return f"forwarded to {route.forward_to}"
        case stored.Action.DROP:
            return "discarded"
    return "kept here"


async def create_route(request: requests.PageRequest) -> routing.Response:
    form: NewRoute = request.form
    forward_to = form.forward_to if form.action is stored.Action.FORWARD else None
    made = await routes.add(request.ctx, request.account_id, form.match, action=form.action, forward_to=forward_to)
    checked = navigation.url(ROUTES_PATH, checked=made.id)
    return request.redirect(checked, notice=f"Mail to {made.match_key} is {_does(made)}.")


async def remove_route(request: requests.PageRequest) -> routing.Response:
    await routes.remove(request.ctx, request.account_id, request.path["id"])
    return request.redirect(ROUTES_PATH, notice="Route removed.")


ROUTES: Final = (
    requests.get(PATH, index, query=Query, permission=requests.CONTENT, viewing=requests.Viewing.REFUSED, is_live=True),
    requests.get(ROUTES_PATH, list_routes, query=RoutesQuery),
    requests.post(ROUTES_PATH, create_route, form=NewRoute),
    requests.post(f"{ROUTES_PATH}/{{id}}/remove", remove_route),
    requests.get(
        f"{PATH}/{{id}}", show, query=previews.Query, permission=requests.CONTENT, viewing=requests.Viewing.REFUSED
    ),
    requests.post(f"{PATH}/{{id}}/remove", remove),
    *previews.parts(f"{PATH}/{{id}}", _content),
)
