"""What an operator changes of an account on its page; the account's own audit log tells each of them."""

from typing import Final

from postroad import errors
from postroad.dashboard import forms, requests
from postroad.dashboard.operator import accounts, console
from postroad.services.accounts import account_limits, closure, credits, registry
from postroad.web import routing

ONE: Final = f"{accounts.PATH}/{{id}}"


class Suspension(forms.Form, frozen=True, kw_only=True):
    """Why; senders see it."""

    reason: str


class Grant(forms.Form, frozen=True, kw_only=True):
    """Credits to add."""

    amount: int
    note: str | None = None


class Renaming(forms.Form, frozen=True, kw_only=True):
    """The new name."""

    name: str


class Limits(forms.Form, frozen=True, kw_only=True):
    """Both limits; an empty field is none."""

    request_rate: int | None = None
    recipients_per_day: int | None = None


class Closing(forms.Form, frozen=True, kw_only=True):
    """The name of the account, typed as a confirmation."""

    name: str


async def suspend(request: requests.PageRequest) -> routing.Response:
    """Suspend it, or replace the reason."""
    form: Suspension = request.form
    account = await registry.suspend(request.ctx, request.path["id"], form.reason)
    return _back(request, f"{account.name} is suspended.")


async def resume(request: requests.PageRequest) -> routing.Response:
    """Let it send again."""
    account = await registry.resume(request.ctx, request.path["id"])
    return _back(request, f"{account.name} can send again.")


async def add_credits(request: requests.PageRequest) -> routing.Response:
    """Add credits."""
    form: Grant = request.form
    account = await credits.add(request.ctx, request.path["id"], form.amount, form.note)
    return _back(request, f"{form.amount:,} credits added; {account.available:,} are available.")


async def charge_nothing(request: requests.PageRequest) -> routing.Response:
    """Let it send without credits."""
    account = await credits.set_unlimited(request.ctx, request.path["id"], unlimited=True)
    return _back(request, f"{account.name} has unlimited credits.")


async def charge(request: requests.PageRequest) -> routing.Response:
    """Charge credits again."""
    account = await credits.set_unlimited(request.ctx, request.path["id"], unlimited=False)
    return _back(request, f"{account.name} is charged credits again.")


async def rename(request: requests.PageRequest) -> routing.Response:
    """Give it another name."""
    form: Renaming = request.form
    account = await registry.rename(request.ctx, request.path["id"], form.name)
    return _back(request, f"The account is now named {account.name}.")


async def limit(request: requests.PageRequest) -> routing.Response:
    """Set its limits."""
    form: Limits = request.form
    account = await account_limits.change(
        request.ctx,
        request.path["id"],
        request_rate=form.request_rate,
        recipients_per_day=form.recipients_per_day,
    )
    return _back(request, f"{account.name} has {account_limits.text(account)}.")


async def close(request: requests.PageRequest) -> routing.Response:
    """Close it, if its name was typed."""
    form: Closing = request.form
    account = await registry.find(request.ctx, request.path["id"])
    if form.name != account.name:
        raise errors.InvalidRequest("name: is not the name of this account; nothing was changed")
    await closure.close(request.ctx, account.id)
    return _back(request, f"{account.name} is closed.")


async def reopen(request: requests.PageRequest) -> routing.Response:
    """Reopen a closed account."""
    account = await closure.reopen(request.ctx, request.path["id"])
    return _back(request, f"{account.name} is reopened.")


def _back(request: requests.PageRequest, notice: str) -> routing.Response:
    return request.redirect(f"{accounts.PATH}/{request.path['id']}", notice=notice)


CREDIT_ROUTES: Final = (
    console.post(f"{ONE}/credits", add_credits, form=Grant),
    console.post(f"{ONE}/charge-nothing", charge_nothing),
    console.post(f"{ONE}/charge", charge),
)
ROUTES: Final = (
    console.post(f"{ONE}/suspend", suspend, form=Suspension),
    console.post(f"{ONE}/resume", resume),
    console.post(f"{ONE}/rename", rename, form=Renaming),
    console.post(f"{ONE}/limits", limit, form=Limits),
    console.post(f"{ONE}/close", close, form=Closing),
    console.post(f"{ONE}/reopen", reopen),
)
