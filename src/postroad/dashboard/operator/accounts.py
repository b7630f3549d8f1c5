"""`/operator/accounts`: every account with what it sends, one account with all facts about it, and a new one."""

from typing import Any, Final, Literal

import msgspec

from postroad.dashboard import forms, requests, urls
from postroad.dashboard.operator import console
from postroad.model import caller, cursors, identifiers, labels
from postroad.services.acceptance import stored_space
from postroad.services.accounts import account_limits, credits, directory, registry
from postroad.services.auth import password_links, users
from postroad.services.notices import sender
from postroad.storage import users as stored_users
from postroad.web import routing

PATH: Final = "/operator/accounts"
ROWS: Final = 50


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which accounts, and the cursor. The form also sends empty fields."""

    search: str | None = None
    state: Literal["", "active", "suspended", "closed"] | None = None
    cursor: str | None = None


class Recovery(forms.Form, frozen=True, kw_only=True):
    """Who has lost their second factor."""

    user_id: str


class NewAccount(forms.Form, frozen=True, kw_only=True):
    """An account to create, and its first owner."""

    name: str
    email: str


async def index(request: requests.PageRequest) -> routing.Response:
    """A page of accounts, oldest first."""
    query: Query = request.query
    search = " ".join((query.search or "").split())[: directory.SEARCH_CHARACTERS]
    after = cursors.after(query.cursor, identifiers.ACCOUNT)
    found = await directory.page(request.ctx, search=search, state=query.state or "", after=after, limit=ROWS + 1)
    next_cursor = cursors.next_cursor([one.account.id for one in found], limit=ROWS)
    return request.page(
        "operator/accounts.html",
        rows=[(one, credits.needs_credits(request.ctx, one.account)) for one in found[:ROWS]],
        search=search,
        state=query.state or "",
        is_first=not after,
        is_filtered=bool(search or query.state),
        next_url=urls.of(PATH, search=search, state=query.state, cursor=next_cursor) if next_cursor else "",
        guard_days=request.ctx.settings.bounce_guard.days,
        guard=request.ctx.settings.bounce_guard,
        max_characters=directory.SEARCH_CHARACTERS,
    )


async def create(request: requests.PageRequest) -> routing.Response:
    """Create an account, invite its owner, and show the link once."""
    form: NewAccount = request.form
    users.check_new(form.email)
    account = await registry.create(request.ctx, form.name)
    invited = await users.invite(request.ctx, account.id, email=form.email, role=caller.Role.OWNER)
    link = _link(request, "Invitation link", invited.user, invited.link_token, invited.expires_at)
    return await _page(request, account.id, status=201, link=link)


async def make_recovery_link(request: requests.PageRequest) -> routing.Response:
    """Create a recovery link for a user and show it once."""
    form: Recovery = request.form
    user = await users.find(request.ctx, request.path["id"], form.user_id)
    made = await users.create_password_link(request.ctx, user.account_id, user.id, is_recovery=True)
    link = _link(request, "Recovery link", user, made.token, made.expires_at)
    return await _page(request, user.account_id, status=201, link=link)


def _link(
    request: requests.PageRequest, title: str, user: stored_users.User, token: str, expires_at: int
) -> dict[str, Any]:
    url = password_links.url(request.ctx.settings, token)
    return {"title": title, "email": user.email, "url": url, "expires_at": expires_at}


async def show(request: requests.PageRequest) -> routing.Response:
    """One account."""
    return await _page(request, request.path["id"])


async def _page(
    request: requests.PageRequest, account_id: str, *, status: int = 200, link: dict[str, Any] | None = None
) -> routing.Response:
    found = await directory.details(request.ctx, account_id)
    return request.page(
        "operator/account.html",
        status=status,
        found=found,
        one=found.account,
        storage=await stored_space.of_account(request.ctx.store, account_id),
        quotas=request.ctx.settings.quotas,
        link=link,
        is_mailed=await sender.payer(request.ctx) is not None,
        needs_credits=credits.needs_credits(request.ctx, found.account),
        suspended_until=registry.suspended_until(request.ctx, found.account),
        default_rate=request.ctx.settings.limits.request_rate,
        max_rate=account_limits.MAX_RATE,
        max_recipients=account_limits.MAX_RECIPIENTS,
        max_reason=labels.REASON_CHARACTERS,
        max_note=credits.NOTE_CHARACTERS,
        log_url=urls.of("/operator/audit-log", account=found.account.id),
    )


ROUTES: Final = (
    console.get(PATH, index, query=Query),
    console.post(PATH, create, form=NewAccount),
    console.get(f"{PATH}/{{id}}", show),
    console.post(f"{PATH}/{{id}}/recovery-link", make_recovery_link, form=Recovery),
)
