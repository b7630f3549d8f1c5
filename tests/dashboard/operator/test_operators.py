"""The console's page of operators: who they are, adding one, inviting one, and ending the role."""

from postroad import context
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.people import users
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser

PATH = "/operator/operators"


async def test_operators_are_listed_with_their_account(operator: Browser) -> None:
    page = (await operator.get(PATH)).text
    assert 'operator@mine.example <span class="muted">(you)</span>' in page
    assert f'<a href="/operator/accounts/{operator.account_id}">Mine</a>' in page


async def test_a_user_becomes_an_operator_and_loses_the_role(
    ctx: context.Context, operator: Browser, stranger: Browser
) -> None:
    added = await operator.post(PATH, {"email": "Owner@theirs.example", "account_id": stranger.account_id})
    assert browser_client.notice_of(added) == "owner@theirs.example is an operator."
    assert (await stranger.get("/operator")).status_code == 200
    assert stranger.user is not None
    ended = await operator.post(f"{PATH}/{stranger.user.id}/remove")
    assert browser_client.notice_of(ended) == "owner@theirs.example is no longer an operator."
    assert (await stranger.get("/operator")).status_code == 403
    written = await audit_log.page(ctx, audit_log.INSTALLATION, before=None, limit=9)
    assert {"operator.added", "operator.removed"} <= {one.action for one in written}


async def test_somebody_new_is_invited_to_the_operators_account_as_a_reader(
    ctx: context.Context, operator: Browser
) -> None:
    made = await operator.post(PATH, {"email": "new@example.org"})
    assert made.status_code == 201
    assert "Invitation link for new@example.org" in made.text
    (invited,) = [one for one in await users.operators(ctx) if one.email == "new@example.org"]
    assert (invited.account_id, invited.role) == (operator.account_id, callers.Role.READ_ONLY)
    assert "invited" in (await operator.get(PATH)).text


async def test_who_looks_at_an_account_still_invites_to_their_own(
    ctx: context.Context, operator: Browser, stranger: Browser
) -> None:
    await operator.post(f"/operator/accounts/{stranger.account_id}/view-as")
    assert (await operator.post(PATH, {"email": "new@example.org"})).status_code == 201
    assert "new@example.org" not in [one.email for one in await users.of_account(ctx, stranger.account_id)]
