"""The pages of providers: what is in force and why, and changes at run time."""

import re

from postroad import context
from postroad.services import audit_log
from postroad.services.operations import destinations
from postroad.storage.mail import mail_counts
from postroad.storage.operations import processes
from tests import contexts
from tests.dashboard.browser_client import Browser, notice_of

PATH = "/operator/providers"


async def report(ctx: context.Context, name: str, state: str, reason: str) -> None:
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        await processes.put_queues(tx, [processes.QueueStatus("mail1-7", name, state, reason, now + 60_000_000, now)])


async def test_those_that_are_not_open_come_first_with_the_reply(ctx: context.Context, operator: Browser) -> None:
    await report(ctx, "microsoft", "slowed", "451 4.7.500 <b>Server busy</b>")
    await report(ctx, "mx.example.org", "blocked", "connection refused")
    page = (await operator.get(PATH)).text
    names = re.findall(r'<td class="name"><a href="([^"]+)">([^<]+)</a>', page)
    assert [name for _, name in names] == ["Microsoft", "mx.example.org", "Google", "Yahoo", "Apple", "All others"]
    assert names[1][0] == f"{PATH}/mx.example.org"
    assert "451 4.7.500 &lt;b&gt;Server busy&lt;/b&gt;" in page
    one = (await operator.get(f"{PATH}/microsoft")).text
    assert '<h1>Microsoft <span class="status status-slowed">slowed</span></h1>' in one
    assert "<code>mail1-7</code>" in one
    assert "continues at a lower rate" in one


async def test_the_share_of_deferrals_and_the_delivery_time_are_those_of_all_accounts(
    ctx: context.Context, operator: Browser
) -> None:
    hour = mail_counts.hour_of(ctx.clock())
    # As mail is counted: what is accepted has no provider yet.
    accepted = mail_counts.CountIncrement(account_id=operator.account_id, hour=hour, messages=7, recipients=7)
    results = mail_counts.CountIncrement(
        account_id=operator.account_id,
        hour=hour,
        provider="google",
        delivered=4,
        bounced=1,
        failed=1,
        deferred=2,
        delivery_time=8_000_000,
    )
    async with ctx.store.transaction() as tx:
        await mail_counts.add_hourly(tx, [accepted, results])
    page = (await operator.get(PATH)).text.partition('id="standing"')[0]
    assert re.findall(r'data-label="Deferred">([^<]+)<', page) == ["25.0%", "–", "–", "–", "–"]
    # A few attempts are enough for the word beside their share.
    assert re.findall(r'<td data-label="Status"><span[^>]*>([^<]+)<', page) == ["deferring", *4 * ["open"]]
    assert re.findall(r'data-label="Delivery time">([^<]+)<', page) == ["2.0 s", "–", "–", "–", "–"]
    assert "<dd>2 attempts, 25.0% of all</dd>" in (await operator.get(f"{PATH}/google")).text


async def test_a_pause_has_a_reason_and_an_end_in_the_users_time(
    ctx: context.Context, clock: contexts.Clock, operator: Browser
) -> None:
    assert (await operator.post(f"{PATH}/google/pause", {})).status_code == 400
    past = await operator.post(f"{PATH}/google/pause", {"reason": "x", "until": "2020-01-01T00:00"})
    assert past.status_code == 400
    paused = await operator.post(f"{PATH}/google/pause", {"reason": "<b>blocked", "until": "2027-06-01T10:30"})
    assert notice_of(paused) == "Paused on all hosts. Its mail waits in the queue."
    found = await destinations.find(ctx, "google")
    assert (found.state, found.override and found.override.pause_until) == ("paused", 1_811_845_800_000_000)
    page = (await operator.follow(paused)).text
    assert "Paused by an operator:</strong> &lt;b&gt;blocked." in page
    assert "2027-06-01 10:30:00" in page
    assert "/google/pause" not in page
    assert "Paused by an operator: &lt;b&gt;blocked." in (await operator.get(PATH)).text
    assert notice_of(await operator.post(f"{PATH}/google/resume")) == "Resumed on all hosts."
    assert (await destinations.find(ctx, "google")).state == "open"
    assert (await operator.post(f"{PATH}/google/resume")).status_code == 409
    entries = await audit_log.page(ctx, audit_log.INSTALLATION, before=None, limit=5)
    assert {"provider.paused", "provider.resumed"} <= {one.action for one in entries}


async def test_limits_are_changed_and_given_back_to_the_settings(ctx: context.Context, operator: Browser) -> None:
    before = (await destinations.find(ctx, "yahoo")).settings
    for fields in ({}, {"connections": "0"}, {"connections": "x"}, {"connections": "10001"}):
        assert (await operator.post(f"{PATH}/yahoo/limits", {"reason": "x", **fields})).status_code == 400
    changed = await operator.post(f"{PATH}/yahoo/limits", {"reason": "slower", "connections": "1"})
    page = (await operator.follow(changed)).text
    assert f'<dd>1 <span class="muted">instead of {before["connections"]} in the settings</span></dd>' in page
    assert 'name="connections" type="number" min="1" max="10000" value="1"' in page
    assert "/yahoo/restore" in page
    restored = await operator.post(f"{PATH}/yahoo/restore")
    assert "/yahoo/restore" not in (await operator.follow(restored)).text
    assert (await destinations.find(ctx, "yahoo")).limits == before


async def test_a_pause_and_changed_limits_are_shown_each_with_its_reason_and_its_end(operator: Browser) -> None:
    await operator.post(f"{PATH}/yahoo/limits", {"reason": "slower", "connections": "1", "until": "2027-06-02T10:30"})
    await operator.post(f"{PATH}/yahoo/pause", {"reason": "blocked", "until": "2027-06-01T10:30"})
    page = re.sub(r"<[^>]+>", "", (await operator.get(f"{PATH}/yahoo")).text)
    assert re.search(
        r"Paused by an operator: blocked\. Until 2027-06-01 10:30:00.*, its mail waits in the queue\.", page
    )
    assert re.search(r"Limits changed by an operator: slower\. Until 2027-06-02 10:30:00", page)


async def test_a_host_that_all_others_cover_is_changed_there(ctx: context.Context, operator: Browser) -> None:
    await operator.post(f"{PATH}/others/pause", {"reason": "maintenance"})
    page = (await operator.get(f"{PATH}/mx.example.org")).text
    assert "Paused by an operator for all others:</strong> maintenance." in page
    assert "/mx.example.org/pause" in page
    assert "/mx.example.org/resume" not in page
