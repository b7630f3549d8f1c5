"""`/notices/{token}`: the link in a notice that ends mail of its kind, without a login (RFC 8058)."""

import dataclasses
from typing import Final

from postroad.dashboard import requests
from postroad.dashboard import site as sites
from postroad.model import actors
from postroad.services import context
from postroad.services.notices import choices, kinds
from postroad.web import routing


async def show(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Ask for a confirmation: mail scanners open every link."""
    token = request.path["token"]
    user, kind = await choices.by_token(ctx, token)
    return _page(site, token=token, email=user.email, title=kinds.KINDS[kind].title, is_done=False)


async def unsubscribe(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """End mail of this kind. Mail programs send this from anywhere, so the token is the only proof."""
    token = request.path["token"]
    actor = actors.Actor(actors.Kind.PERSON, None, request.id, request.client_address)
    user, kind = await choices.unsubscribe(dataclasses.replace(ctx, actor=actor), token)
    return _page(site, token=token, email=user.email, title=kinds.KINDS[kind].title, is_done=True)


def _page(site: sites.Site, **values: object) -> routing.Response:
    content = site.pages.render("unsubscribe.html", {"problem": None, **values})
    return routing.Response(200, content, headers=site.headers, content_type=sites.HTML)


ROUTES: Final = (
    requests.public("GET", "/notices/{token}", show),
    requests.public("POST", "/notices/{token}", unsubscribe),
)
