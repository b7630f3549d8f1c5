"""The pages of the queue: numbers, rows, holds, and changes of a selection with a count before them."""

import asyncio
import re

import pytest
import pytest_asyncio

from postroad import context
from postroad.dashboard.framework import site as sites
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.operations import operator_queue
from postroad.services.queue import holds
from postroad.storage.mail import delivery_controls as stored_holds
from postroad.storage.operations import processes
from tests import accepted_mail, contexts, queue_steps
from tests.dashboard.browser_client import Browser, location_of, notice_of

PATH = "/operator/queue"


@pytest_asyncio.fixture
async def accounts(ctx: context.Context, clock: contexts.Clock, operator: Browser) -> tuple[str, str]:
    """Two accounts: one with a deferred and a new recipient, one with three new ones, half an hour later."""
    other = await account_registry.create(ctx, "<i>Theirs")
    for account_id, domain in ((operator.account_id, "example.com"), (other.id, "their.example")):
        await accepted_mail.allow_sending(ctx, account_id, domain=domain)
    await accepted_mail.accept(ctx, operator.account_id)
    (key,) = await queue_steps.claim(ctx, operator.account_id)
    await queue_steps.defer(ctx, key, seconds=9 * 3600)
    clock.pass_seconds(1800)
    await accepted_mail.accept(ctx, operator.account_id, to=("bob@example.org",))
    await accepted_mail.accept(
        ctx, other.id, sender="shop@their.example", to=("a@example.org", "b@example.org", "c@example.net")
    )
    return operator.account_id, other.id


async def counted_page(operator: Browser) -> str:
    """The page, once the queue is counted: a very slow machine counts longer than a page waits."""
    while "for the first time" in (page := (await operator.get(PATH)).text):
        await asyncio.sleep(0.01)
    return page


def figures(page: str) -> dict[str, str]:
    return dict(re.findall(r'<dt>(\w+)</dt><dd class="figure">([\d,]+)</dd>', page))


async def test_the_queue_in_numbers(operator: Browser, accounts: tuple[str, str]) -> None:
    mine, other = accounts
    page = await counted_page(operator)
    assert figures(page) == {"All": "5", "Ready": "4", "Sending": "0", "Waiting": "1", "Scheduled": "0", "Held": "0"}
    largest = page.partition('id="largest"')[2].partition('id="reasons"')[0]
    assert re.findall(r'recipients\?account_id=(\w+)">([^<]*)</a></td><td class="number"[^>]*>(\d+)', largest) == [
        (other, "&lt;i&gt;Theirs", "3"),
        (mine, "Mine", "2"),
    ]
    assert re.findall(r'recipients\?domain=([\w.]+)">', largest) == ["example.org", "example.net"]
    assert re.search(r"10 minutes to 1 hour</td>.*?<td class=\"number\">1</td>", page)
    assert '<a href="/operator/providers/google">Google</a>' in page
    assert "What is held" not in page


async def test_a_count_that_takes_long_is_said(
    operator: Browser, accounts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del accounts
    monkeypatch.setattr(operator_queue, "WAIT_SECONDS", 0)
    assert "The queue is being counted for the first time." in (await operator.get(PATH)).text


async def test_recipients_are_listed_with_the_reason(
    operator: Browser, accounts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.dashboard.operator.queue.ROWS", 2)
    mine, other = accounts
    seen: list[str] = []
    url = f"{PATH}/recipients"
    while url:
        page = (await operator.get(url)).text
        seen += re.findall(r'<td class="address">([^<]+)<', page)
        found = re.search(r'<nav class="more"[^>]*><a class="button secondary" href="([^"]+)"', page)
        url = found[1].replace("&amp;", "&") if found else ""
    assert sorted(seen) == ["a@example.org", "ada@example.net", "b@example.org", "bob@example.org", "c@example.net"]
    waiting = (await operator.get(f"{PATH}/recipients", account_id=mine, state="waiting")).text
    assert "Google asked us to try later (4.7.1); next attempt at " in waiting
    assert f'href="{PATH}/change?account_id={mine}"' in waiting
    nothing = (await operator.get(f"{PATH}/recipients", account_id=other, domain="example.com")).text
    assert "No recipients match." in nothing
    assert (await operator.get(f"{PATH}/recipients", account_id="acc_1")).status_code == 404


async def test_a_change_is_counted_then_confirmed_then_a_job(
    ctx: context.Context, site: sites.Site, operator: Browser, accounts: tuple[str, str]
) -> None:
    _, other = accounts
    page = (await operator.get(f"{PATH}/change", action="expire", account_id=other, domain="EXAMPLE.org")).text
    assert "<h1>Expire 2 recipients?</h1>" in page
    assert f'<a href="/operator/accounts/{other}">&lt;i&gt;Theirs</a> <code>{other}</code>' in page
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)">', page.partition("What will")[2]))
    assert fields.keys() == {"csrf_token", "action", "account_id", "domain"}
    assert (fields["action"], fields["account_id"], fields["domain"]) == ("expire", other, "example.org")
    started = await operator.client.post(f"{PATH}/change", data=fields)
    await site.operator_state.jobs._flights._wait()
    shown = await operator.follow(started)
    assert "<strong>2 recipients changed.</strong>" in shown.text
    assert "Expire: mail to example.org of account" in shown.text
    assert await operator_queue._count(
        ctx, "cancel", await operator_queue.narrow(ctx, account_id=other, domain=None)
    ) == (
        1,
        True,
    )
    assert "expired 2 recipients in the queue before their time" in [
        audit_log.text(one).partition(" (")[0]
        for one in await audit_log.page(ctx, audit_log.INSTALLATION, before=None, limit=5)
    ]
    assert f'<a href="{location_of(started)}">Expire</a>' in (await operator.get(PATH)).text


@pytest.mark.parametrize("action, counted", [("retry", "1 recipient"), ("cancel", "5 recipients")])
async def test_the_whole_queue_is_a_selection_of_its_own(
    operator: Browser, accounts: tuple[str, str], action: str, counted: str
) -> None:
    del accounts
    page = (await operator.get(f"{PATH}/change", action=action, all="true")).text
    assert f"<h1>{action.capitalize()} {counted}?</h1>" in page
    assert '<input type="hidden" name="all" value="true">' in page


async def test_no_selection_is_not_everything(operator: Browser, accounts: tuple[str, str]) -> None:
    del accounts
    page = await operator.get(f"{PATH}/change?account_id=&domain=&action=cancel")
    assert "Name an account, a recipient domain or both, or select the whole queue." in page.text
    assert (await operator.post(f"{PATH}/change", {"action": "cancel"})).status_code == 400
    assert figures(await counted_page(operator))["All"] == "5"


async def test_an_unfinished_count_is_called_so(
    operator: Browser, accounts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del accounts
    await counted_page(operator)
    monkeypatch.setattr(operator_queue, "COUNT_SECONDS", 0)
    page = (await operator.get(f"{PATH}/change", action="cancel", all="true")).text
    assert "<h1>Cancel about 5 recipients?</h1>" in page
    assert "too long to be counted at once" in page


async def test_a_hold_has_a_reason_and_is_released(
    ctx: context.Context, operator: Browser, accounts: tuple[str, str]
) -> None:
    _, other = accounts
    fields = {"action": "hold", "account_id": other}
    assert (await operator.post(f"{PATH}/change", fields)).status_code == 400
    held = await operator.post(f"{PATH}/change", {**fields, "reason": "<script>spam?"})
    assert notice_of(held) == f"Held: all mail of account {other}."
    page = (await operator.follow(held)).text
    assert "&lt;script&gt;spam?" in page
    assert notice_of(await operator.post(f"{PATH}/change", {**fields, "reason": "x"})).startswith("Already held")
    released = await operator.post(f"{PATH}/release", {"account_id": other})
    assert notice_of(released) == f"Released: all mail of account {other}."
    assert await holds.in_force(ctx) == []
    own = await audit_log.page(ctx, other, before=None, limit=10)
    assert {(one.action, one.actor) for one in own} >= {
        ("delivery.held", "operator"),
        ("delivery.released", "operator"),
    }


async def test_after_a_restore_duplicates_must_be_accepted(ctx: context.Context, operator: Browser) -> None:
    async with ctx.store.transaction() as tx:
        await stored_holds.put_hold(tx, stored_holds.Hold("", "", "restored", ctx.clock(), None, in_doubt_before=1))
    page = (await operator.get(PATH)).text
    assert '<input type="checkbox" name="duplicates_accepted" value="true" required>' in page
    assert (await operator.post(f"{PATH}/release")).status_code == 409
    assert (await operator.post(f"{PATH}/release", {"duplicates_accepted": "true"})).status_code == 303
    assert await holds.in_force(ctx) == []


async def test_a_job_that_runs_failed_or_was_interrupted_says_so(
    ctx: context.Context, clock: contexts.Clock, operator: Browser
) -> None:
    now = ctx.clock()
    states = {"running": "null", "failed": '"the job failed; the log has the details"'}
    ids = {state: ctx.new_id("job_", now=now) for state in states}
    async with ctx.store.transaction() as tx:
        for state, result in states.items():
            job = processes.Job(ids[state], "queue.retry", "all mail", state, 500, None, result, "", now, now)
            await processes.insert_job(tx, job)
    assert "Delivery continues meanwhile." in (await operator.get(f"/operator/jobs/{ids['running']}")).text
    assert "The job failed; the log has the details." in (await operator.get(f"/operator/jobs/{ids['failed']}")).text
    clock.pass_seconds(16 * 60)
    stopped = (await operator.get(f"/operator/jobs/{ids['running']}")).text
    assert "The process that ran this job has stopped." in stopped
