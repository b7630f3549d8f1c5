"""`/templates/{alias}/versions`: what was saved and when, how two versions differ, and the way back to one."""

import functools
from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard import requests, templates
from postroad.services import template_drafts
from postroad.services import templates as services
from postroad.web import routing

PATH: Final = f"{templates.ONE}/versions"
# More than any number of a version has.
MAX_DIGITS: Final = 9


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which versions are compared: the numbers of an older and a newer one."""

    old: str | None = None
    new: str | None = None


async def index(request: requests.PageRequest) -> routing.Response:
    """The versions, and the difference of two: of those that are asked for, or of the latest and the one before."""
    alias = request.path["alias"]
    template = await services.find(request.ctx, request.account_id, alias)
    history = await template_drafts.history(request.ctx, request.account_id, alias)
    numbers = [one.number for one in history]
    query: Query = request.query
    new = _asked(query.new) if query.new else next(iter(numbers), 0)
    old = _asked(query.old) if query.old else max((one for one in numbers if one < new), default=0)
    differences = None
    if old and new:
        before, after = [await template_drafts.find(request.ctx, request.account_id, alias, one) for one in (old, new)]
        work = functools.partial(template_drafts.differences, before, after)
        differences = await request.ctx.threads.run(request.account_id, work)
    return request.page(
        "template_versions.html", template=template, history=history, old=old, new=new, differences=differences
    )


async def restore(request: requests.PageRequest) -> routing.Response:
    """Save an old version as a draft."""
    alias, number = request.path["alias"], _number(request.path["number"])
    await template_drafts.restore(request.ctx, request.account_id, alias, number)
    return request.redirect(f"{templates.PATH}/{alias}", notice=f"Version {number} restored as a draft.")


def _asked(text: str) -> int:
    try:
        return _number(text)
    except errors.NotFound:
        raise errors.InvalidRequest("choose the versions to compare by their numbers") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise errors.NotFound("no such version of this template")
    return int(text)


ROUTES: Final = (
    requests.get(PATH, index, query=Query, permission=requests.CONTENT),
    requests.post(f"{PATH}/{{number}}/restore", restore),
)
