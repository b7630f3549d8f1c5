"""`/unsubscribe/{token}`: where the links of mail with a list lead, for recipients and their mail programs (RFC 8058).

A mail program sends a POST, from anywhere and without a cookie: the token is the proof. A GET changes nothing, because
scanners open every link. The page is in a language of its reader.
"""

from collections.abc import Mapping
from importlib import resources
from typing import Final, Literal

import msgspec

from postroad import context, errors
from postroad.dashboard.framework import requests
from postroad.dashboard.framework import site as sites
from postroad.mail import unsubscribe_links
from postroad.services.suppressions import unsubscribes
from postroad.storage.mail import suppressions as stored
from postroad.web import routing

ROUTE: Final = f"{unsubscribe_links.PATH}/{{token}}"
HEADERS: Final = (("X-Robots-Tag", "noindex"), ("Vary", "Accept-Language"))


class Texts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The texts of the page in a language. `{list}`, `{sender}` and `{address}` stand for those of the link."""

    title: str
    question: str
    button: str
    all_question: str
    all_button: str
    done: str
    all_done: str
    undo: str
    undone: str
    invalid: str


TEXTS: Final = msgspec.toml.decode(
    (resources.files(__package__) / "unsubscribe.toml").read_bytes(), type=dict[str, Texts]
)
DEFAULT: Final = "en"


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The button of the page that was pressed."""

    choice: Literal["list", "all", "undo"]
    undo: str | None = None


def language(accepted: bytes | None) -> str:
    """The best of our languages for an `Accept-Language` field (RFC 9110 section 12.5.4)."""
    weights: dict[str, float] = {}
    for part in (accepted or b"").decode("latin-1").lower().split(","):
        tag, _, weight = part.partition(";q=")
        name = tag.strip().partition("-")[0]
        try:
            weights.setdefault(name, float(weight or 1))
        except ValueError:
            continue
    known = [name for name in weights if name in TEXTS and weights[name] > 0]
    return max(known, key=weights.__getitem__, default=DEFAULT)


async def show(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    try:
        link = unsubscribes.by_token(ctx, request.path["token"])
    except errors.NotFound:
        return _invalid(site, request)
    done, undo = await unsubscribes.left(ctx, link)
    return _page(site, request, link, done=done, undo=undo)


async def one_click(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Unsubscribe; whatever form the body has, it can say nothing else."""
    try:
        link = unsubscribes.by_token(ctx, request.path["token"])
        undo = await unsubscribes.leave(ctx, link, stored.ListSource.ONE_CLICK)
    except errors.NotFound:
        return _invalid(site, request)
    return _page(site, request, link, done="list", undo=undo)


async def choose(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    body: Choice = request.body
    undo = ""
    try:
        link = unsubscribes.by_token(ctx, request.path["token"])
        if body.choice == "undo":
            await unsubscribes.undo(ctx, link, body.undo or "")
        else:
            undo = await unsubscribes.leave(ctx, link, stored.ListSource.PAGE, is_all=body.choice == "all")
    except errors.NotFound:
        return _invalid(site, request)
    return _page(site, request, link, done=body.choice, undo=undo)


def _page(
    site: sites.Site, request: routing.Request, link: unsubscribe_links.Link, *, done: str = "", undo: str = ""
) -> routing.Response:
    chosen = language(request.headers.get(b"accept-language"))
    # Written by the sender: no mark may turn the sentence around.
    named: Mapping[str, str] = {
        "list": sites.plain(link.list_name),
        "sender": sites.plain(link.sender_domain),
        "address": sites.plain(link.email_key),
    }
    texts = {name: text.format_map(named) for name, text in msgspec.structs.asdict(TEXTS[chosen]).items()}
    action = f"{unsubscribe_links.PATH}/{request.path['token']}/choice"
    values = {"language": chosen, "texts": texts, "action": action, "done": done, "undo": undo}
    return site.page(request.headers, "unsubscribe.html", values, headers=HEADERS)


def _invalid(site: sites.Site, request: routing.Request) -> routing.Response:
    chosen = language(request.headers.get(b"accept-language"))
    values = {"language": chosen, "texts": TEXTS[chosen], "done": "invalid"}
    return site.page(request.headers, "unsubscribe.html", values, status=404, headers=HEADERS)


ROUTES: Final = (
    requests.public("GET", ROUTE, show),
    requests.public("POST", ROUTE, one_click),
    requests.public("POST", f"{ROUTE}/choice", choose, form=Choice),
)
