"""The console's pages of accounts: the list, one account, what an operator changes, and a new account."""

import html
import re

import pytest

from postroad import context, errors
from postroad.model.bounces import bounce_guard
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.accounts import account_registry, credits
from postroad.services.people import users
from postroad.storage.mail import mail_counts
from postroad.storage.people import accounts
from tests import contexts
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser

LIST = "/operator/accounts"


def listed(text: str) -> list[str]:
    return [html.unescape(name) for name in re.findall(r'class="row-link" href="[^"]+">([^<]+)</a>', text)]


async def count(ctx: context.Context, account_id: str) -> None:
    """Mail of the last hours, for the figures of an account."""
    hour = mail_counts.hour_of(ctx.clock())
    row = mail_counts.CountIncrement
    async with ctx.store.transaction() as tx:
        await mail_counts.add_hourly(
            tx,
            [
                row(account_id=account_id, hour=hour, messages=1_200, recipients=1_500),
                row(account_id=account_id, hour=hour, provider="google", delivered=1_400, bounced=90, deferred=5),
                row(account_id=account_id, hour=hour - 30, messages=7, recipients=8),
            ],
        )


async def test_accounts_are_listed_and_found(ctx: context.Context, operator: Browser, theirs: accounts.Account) -> None:
    await count(ctx, theirs.id)
    page = (await operator.get(LIST)).text
    assert sorted(listed(page)) == ["Mine", "Theirs"]
    assert '<td class="number" data-label="Recipients">1,500</td>' in page
    assert '<td class="number" data-label="Delivered">1,400</td>' in page
    assert listed((await operator.get(LIST, search="  theirS ")).text) == ["Theirs"]
    assert listed((await operator.get(LIST, search=theirs.id)).text) == ["Theirs"]
    await account_registry.close(ctx, theirs.id)
    assert listed((await operator.get(LIST, state="closed")).text) == ["Theirs"]
    nothing = (await operator.get(LIST, state="suspended")).text
    assert "No accounts match." in nothing


async def test_the_list_has_pages(
    ctx: context.Context, clock: contexts.Clock, operator: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.pass_seconds(1)
    monkeypatch.setattr("postroad.dashboard.operator.accounts.ROWS", 1)
    await account_registry.create(ctx, "Second")
    page = (await operator.get(LIST, search="e")).text
    (path,) = re.findall(r'<nav class="more" aria-label="More"><a [^>]*href="([^"]+)"', page)
    assert listed((await operator.get(html.unescape(path))).text) == ["Second"]
    assert "<nav" not in (await operator.get(html.unescape(path))).text.partition("<main")[2]


async def test_rates_above_the_warning_are_marked(
    ctx: context.Context, operator: Browser, theirs: accounts.Account
) -> None:
    assert (await operator.get(LIST)).text.count('<span class="muted">–</span>') == 4
    day = times.day_of(ctx.clock())
    async with ctx.store.transaction() as tx:
        await mail_counts.add_guard_days(tx, day, {theirs.id: bounce_guard.Counts(1_000, 40, 0)})
    page = (await operator.get(LIST)).text
    assert '<span class="problem">4.00%</span>' in page
    assert "<span>0.00%</span>" in page


async def test_an_account_is_shown_with_its_facts(
    ctx: context.Context, operator: Browser, stranger: Browser, theirs: accounts.Account
) -> None:
    await count(ctx, theirs.id)
    await credits.add(ctx, theirs.id, 2_500, None)
    await sample_account.create_sample_data(ctx, theirs.id, domain="theirs.example")
    page = (await operator.get(f"{LIST}/{theirs.id}")).text
    assert theirs.id in page
    for text in (
        "theirs.example",
        "owner@theirs.example",
        "100 sends per second",
        "<dt>Daily limit</dt><dd>none</dd>",
        "<dt>Storage</dt><dd>0.0 of 10,240 MiB, test mail 0.0 of 256 MiB</dd>",
    ):
        assert text in page, text
    assert re.search(r'<th scope="row">Delivered</th><td class="number">1,400</td>', page)
    assert f'action="/operator/accounts/{theirs.id}/view-as"' in page
    assert f'href="/operator/audit-log?account={theirs.id}"' in page


async def test_names_and_reasons_are_text(ctx: context.Context, operator: Browser, theirs: accounts.Account) -> None:
    hostile = sample_account.HOSTILE[:90]
    await account_registry.rename(ctx, theirs.id, hostile)
    await account_registry.suspend(ctx, theirs.id, f"{hostile} \N{RIGHT-TO-LEFT MARK}".strip(" \N{RIGHT-TO-LEFT MARK}"))
    for path in (LIST, f"{LIST}/{theirs.id}", "/operator/audit-log"):
        page = (await operator.get(path)).text
        assert "<script>alert" not in page, path
        assert "onerror=alert(2)&gt;" in page, path
        assert not re.search(r"<img src=x", page), path


async def test_each_change_is_made_and_told_by_the_accounts_own_log(
    ctx: context.Context, operator: Browser, theirs: accounts.Account
) -> None:
    path = f"{LIST}/{theirs.id}"

    async def change(action: str, **fields: str) -> str:
        answer = await operator.post(f"{path}/{action}", fields)
        assert (answer.status_code, answer.headers.get("location")) == (303, path), answer.text
        return browser_client.notice_of(answer)

    assert await change("suspend", reason="spam") == "Theirs is suspended."
    page = (await operator.get(path)).text
    assert "by an operator.</strong> Spam." in page
    assert 'value="spam"' in page
    assert await change("resume") == "Theirs can send again."
    assert await change("credits", amount="1500", note="invoice 7") == "1,500 credits added; 1,500 are available."
    assert await change("charge-nothing") == "Theirs has unlimited credits."
    assert await change("charge") == "Theirs is charged credits again."
    limited = await change("limits", request_rate="20", recipients_per_day="")
    assert limited == "Theirs has 20 sends per second and no daily limit."
    assert 'name="request_rate" type="number" min="1" max="1000000" value="20"' in (await operator.get(path)).text
    assert await change("limits") == "Theirs has the default rate and no daily limit."
    assert await change("rename", name="Others") == "The account is now named Others."
    assert await change("close", name="Others") == "Others is closed."
    assert "Nobody can log in or send." in (await operator.get(path)).text
    assert await change("reopen") == "Others is reopened."
    written = await audit_log.page(ctx, theirs.id, before=None, limit=50)
    assert [one.actor for one in written if one.action != "account.created"] == ["operator"] * 10


@pytest.mark.parametrize("typed", ["", "theirs", "Theirs ", "Mine"])
async def test_an_account_is_closed_only_with_its_name(
    ctx: context.Context, operator: Browser, theirs: accounts.Account, typed: str
) -> None:
    answer = await operator.post(f"{LIST}/{theirs.id}/close", {"name": typed})
    assert answer.status_code == 400
    assert (await account_registry.find(ctx, theirs.id)).closed_at is None


async def test_closing_an_account_leaves_an_operator_who_can_log_in(
    ctx: context.Context, operator: Browser, stranger: Browser
) -> None:
    mine, theirs = f"{LIST}/{operator.account_id}", f"{LIST}/{stranger.account_id}"
    refused = await operator.post(f"{mine}/close", {"name": "Mine"})
    assert (refused.status_code, (await account_registry.find(ctx, operator.account_id)).closed_at) == (409, None)
    assert "No operator could log in any more" in refused.text
    assert stranger.user is not None
    await users.add_operator(ctx, stranger.user.email)
    await operator.post(f"{theirs}/close", {"name": "Theirs"})
    assert (await operator.post(f"{mine}/close", {"name": "Mine"})).status_code == 409
    await operator.post(f"{theirs}/reopen")
    assert browser_client.notice_of(await operator.post(f"{mine}/close", {"name": "Mine"})) == "Mine is closed."


async def test_impossible_changes_are_refused(
    ctx: context.Context, operator: Browser, theirs: accounts.Account
) -> None:
    path = f"{LIST}/{theirs.id}"
    refused = {
        "credits": {"amount": "0"},
        "limits": {"request_rate": "0"},
        "rename": {"name": "mine"},
        "suspend": {"reason": ""},
        "reopen": {},
    }
    for action, fields in refused.items():
        assert (await operator.post(f"{path}/{action}", fields)).status_code in (400, 409), action
    assert (await operator.post(f"{LIST}/acc_{'0' * 28}/suspend", {"reason": "x"})).status_code == 404
    assert (await operator.get(f"{LIST}/acc_{'0' * 28}")).status_code == 404


async def test_a_new_account_has_an_owner_with_a_link(ctx: context.Context, operator: Browser) -> None:
    made = await operator.post(LIST, {"name": "New shop", "email": "ada@new.example"})
    assert made.status_code == 201
    assert "Invitation link for ada@new.example" in made.text
    assert "/password/" in made.text
    found = await account_registry.by_name(ctx, "New shop")
    assert found is not None
    (owner,) = await users.of_account(ctx, found.id)
    assert (owner.email, owner.role) == ("ada@new.example", callers.Role.OWNER)


async def test_no_account_is_created_for_an_owner_who_cannot_be_invited(
    ctx: context.Context, operator: Browser
) -> None:
    answer = await operator.post(LIST, {"name": "New shop", "email": "no address"})
    assert answer.status_code == 400
    assert await account_registry.by_name(ctx, "New shop") is None
    with pytest.raises(errors.InvalidRequest):
        users.check_address("no address")


async def test_the_owner_of_another_account_may_own_a_new_one(
    ctx: context.Context, operator: Browser, stranger: Browser
) -> None:
    assert stranger.user is not None
    answer = await operator.post(LIST, {"name": "New shop", "email": stranger.user.email})
    assert answer.status_code == 201
    found = await account_registry.by_name(ctx, "New shop")
    assert found is not None
    (owner,) = await users.of_account(ctx, found.id)
    assert (owner.email, owner.joined_at) == (stranger.user.email, None)
