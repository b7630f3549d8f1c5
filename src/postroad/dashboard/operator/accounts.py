"""`/operator/accounts`: every account with what it sends, what an operator changes of one, and viewing as one."""

from typing import Any, Final, Literal

import msgspec

from postroad import errors
from postroad.dashboard.framework import cookies, forms, navigation, requests
from postroad.dashboard.operator import console
from postroad.mail.accept import queue_limit
from postroad.model.people import callers
from postroad.model.units import identifiers, labels
from postroad.services.accounts import account_registry, credits, directory, view_as
from postroad.services.operations.notices import sender
from postroad.services.people import password_links, users
from postroad.storage.people import users as stored_users
from postroad.web import routing

PATH: Final = "/operator/accounts"
ACCOUNT: Final = f"{PATH}/{{id}}"
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
    name: str
    email: str


async def index(request: requests.PageRequest) -> routing.Response:
    query: Query = request.query
    search = " ".join((query.search or "").split())[: directory.SEARCH_CHARACTERS]
    after = identifiers.after(query.cursor, identifiers.ACCOUNT)
    found = await directory.page(request.ctx, search=search, state=query.state or "", after=after, limit=ROWS + 1)
    next_cursor = identifiers.next_cursor([account.account.id for account in found], limit=ROWS)
    return request.page(
        "operator/accounts.html",
        rows=[(account, credits.needs_credits(request.ctx, account.account)) for account in found[:ROWS]],
        search=search,
        state=query.state or "",
        is_first=not after,
        is_filtered=bool(search or query.state),
        next_url=navigation.url(PATH, search=search, state=query.state, cursor=next_cursor) if next_cursor else "",
        guard_days=request.ctx.settings.bounce_guard.days,
        guard=request.ctx.settings.bounce_guard,
        max_characters=directory.SEARCH_CHARACTERS,
    )


async def create(request: requests.PageRequest) -> routing.Response:
    """Create an account, invite its owner, and show the link once."""
    form: NewAccount = request.form
    users.check_address(form.email)
    account = await account_registry.create(request.ctx, form.name)
    invited = await users.invite(request.ctx, account.id, email=form.email, role=callers.Role.OWNER)
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
    return await _page(request, request.path["id"])


async def _page(
    request: requests.PageRequest, account_id: str, *, status: int = 200, link: dict[str, Any] | None = None
) -> routing.Response:
    found = await directory.details(request.ctx, account_id)
    return request.page(
        "operator/account.html",
        status=status,
        found=found,
        selected_account=found.account,
        storage=await queue_limit.usage_of_account(request.ctx.store, account_id),
        stored_megabytes=request.ctx.settings.quotas.stored_megabytes,
        test_megabytes=queue_limit.TEST_MEGABYTES,
        link=link,
        is_mailed=await sender.payer(request.ctx) is not None,
        needs_credits=credits.needs_credits(request.ctx, found.account),
        suspended_until=account_registry.suspended_until(request.ctx, found.account),
        default_rate=request.ctx.settings.limits.request_rate,
        max_rate=account_registry.MAX_RATE,
        max_recipients=account_registry.MAX_RECIPIENTS,
        max_reason=labels.REASON_CHARACTERS,
        max_note=credits.NOTE_CHARACTERS,
        log_url=navigation.url("/operator/audit-log", account=found.account.id),
    )


ROUTES: Final = (
    console.get(PATH, index, query=Query),
    console.post(PATH, create, form=NewAccount),
    console.get(ACCOUNT, show),
    console.post(f"{ACCOUNT}/recovery-link", make_recovery_link, form=Recovery),
)


class Suspension(forms.Form, frozen=True, kw_only=True):
    """Why; senders see it."""

    reason: str


class Grant(forms.Form, frozen=True, kw_only=True):
    amount: int
    note: str | None = None


class Renaming(forms.Form, frozen=True, kw_only=True):
    name: str


class Limits(forms.Form, frozen=True, kw_only=True):
    """Both limits; an empty field is none."""

    request_rate: int | None = None
    recipients_per_day: int | None = None


class Closing(forms.Form, frozen=True, kw_only=True):
    name: str


async def suspend(request: requests.PageRequest) -> routing.Response:
    form: Suspension = request.form
    account = await account_registry.suspend(request.ctx, request.path["id"], form.reason)
    return _back(request, f"{account.name} is suspended.")


async def resume(request: requests.PageRequest) -> routing.Response:
    account = await account_registry.resume(request.ctx, request.path["id"])
    return _back(request, f"{account.name} can send again.")


async def add_credits(request: requests.PageRequest) -> routing.Response:
    form: Grant = request.form
    account = await credits.add(request.ctx, request.path["id"], form.amount, form.note)
    return _back(request, f"{form.amount:,} credits added; {account.available:,} are available.")


async def charge_nothing(request: requests.PageRequest) -> routing.Response:
    """Let it send without credits."""
    account = await credits.set_unlimited(request.ctx, request.path["id"], unlimited=True)
    return _back(request, f"{account.name} has unlimited credits.")


async def charge(request: requests.PageRequest) -> routing.Response:
    account = await credits.set_unlimited(request.ctx, request.path["id"], unlimited=False)
    return _back(request, f"{account.name} is charged credits again.")


async def rename(request: requests.PageRequest) -> routing.Response:
    form: Renaming = request.form
    account = await account_registry.rename(request.ctx, request.path["id"], form.name)
    return _back(request, f"The account is now named {account.name}.")


async def limit(request: requests.PageRequest) -> routing.Response:
    form: Limits = request.form
    account = await account_registry.change_limits(
        request.ctx,
        request.path["id"],
        request_rate=form.request_rate,
        recipients_per_day=form.recipients_per_day,
    )
    return _back(request, f"{account.name} has {account_registry.limits_text(account)}.")


async def close(request: requests.PageRequest) -> routing.Response:
    """Close it, if its name was typed."""
    form: Closing = request.form
    account = await account_registry.find(request.ctx, request.path["id"])
    if form.name != account.name:
        raise errors.InvalidRequest("name: is not the name of this account; nothing was changed")
    await account_registry.close(request.ctx, account.id)
    return _back(request, f"{account.name} is closed.")


async def reopen(request: requests.PageRequest) -> routing.Response:
    account = await account_registry.reopen(request.ctx, request.path["id"])
    return _back(request, f"{account.name} is reopened.")


def _back(request: requests.PageRequest, notice: str) -> routing.Response:
    return request.redirect(f"{PATH}/{request.path['id']}", notice=notice)


CREDIT_ROUTES: Final = (
    console.post(f"{ACCOUNT}/credits", add_credits, form=Grant),
    console.post(f"{ACCOUNT}/charge-nothing", charge_nothing),
    console.post(f"{ACCOUNT}/charge", charge),
)
ACTION_ROUTES: Final = (
    console.post(f"{ACCOUNT}/suspend", suspend, form=Suspension),
    console.post(f"{ACCOUNT}/resume", resume),
    console.post(f"{ACCOUNT}/rename", rename, form=Renaming),
    console.post(f"{ACCOUNT}/limits", limit, form=Limits),
    console.post(f"{ACCOUNT}/close", close, form=Closing),
    console.post(f"{ACCOUNT}/reopen", reopen),
)


async def begin_view(request: requests.PageRequest) -> routing.Response:
    """Begin to view an account; its overview opens."""
    view = await view_as.begin(request.ctx, request.session, request.path["id"])
    return requests.redirect(request.http.headers, "/", headers=(requests.view_as_cookie(request, view),))


async def end_view(request: requests.PageRequest) -> routing.Response:
    """End the view; the console's page of the account opens."""
    view = requests.read_view(request)
    gone = cookies.remove(cookies.VIEW_AS, is_secure=request.site.is_secure)
    path = PATH if view is None else f"{PATH}/{view.account_id}"
    return request.redirect(path, notice="You stopped viewing the account.", headers=(gone,))


VIEW_ROUTES: Final = (
    console.post(f"{ACCOUNT}/view-as", begin_view),
    console.post("/operator/view-as/end", end_view),
)
