"""The page of the installation's health."""

import asyncio

from postroad import context
from postroad.dashboard.framework import site as sites
from postroad.services.operations import destinations
from postroad.storage.mail import mail_counts
from postroad.storage.operations import processes
from tests.dashboard.browser_client import Browser


async def test_checks_run_in_the_background_and_problems_come_first(site: sites.Site, operator: Browser) -> None:
    assert "The checks are running." in (await operator.get("/operator")).text
    while site.operator_state.checks.is_running:
        await asyncio.sleep(0)
    page = (await operator.get("/operator")).text
    problems, _, others = page.partition("<summary>1 check passed</summary>")
    assert "Almost full.<br><strong>Delete something.</strong>" in problems
    assert "Enough space." not in problems
    assert "Enough space." in others
    assert '<h2 id="checks-title">Checks <span class="status status-warning">warning</span></h2>' in page


async def test_a_silent_process_is_marked_and_its_name_is_text(ctx: context.Context, operator: Browser) -> None:
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        for host, seen in (("<b>mail1", now), ("mail2", now - 120_000_000)):
            one = processes.Process(
                f"{host}-7", host, 7, ("api", "delivery"), "1.2.3", seen, seen, '{"accepted":2.5,"failed":0}'
            )
            await processes.put(tx, one)
    page = (await operator.get("/operator")).text
    rows = page.partition('id="processes"')[2].partition("</section>")[0].split("<tr>")[2:]
    assert [("status-silent" in row, "status-running" in row) for row in rows] == [(True, False), (False, True)]
    assert "<code>&lt;b&gt;mail1-7</code>" in rows[1]
    assert '<td data-label="Per second">accepted 2.5</td>' in rows[1]
    assert "api, delivery" in rows[1]


async def test_the_database_and_certificates_are_shown(operator: Browser) -> None:
    page = (await operator.get("/operator")).text
    assert "<dt>Engine</dt><dd>SQLite</dd>" in page
    assert "it is measured after a day" in page
    assert "Certificates" not in page, "no listener uses TLS"


async def test_the_first_line_says_what_is_wrong_and_since_when(
    ctx: context.Context, site: sites.Site, operator: Browser
) -> None:
    counts = mail_counts.CountIncrement(
        account_id=operator.account_id,
        hour=mail_counts.hour_of(ctx.clock()) - 1,
        provider="yahoo",
        delivered=12,
        deferred=12,
    )
    async with ctx.store.transaction() as tx:
        await mail_counts.add_hourly(tx, [counts])
    page = (await operator.get("/operator")).text
    assert "Yahoo is deferring 50%</strong> since <time" in page
    assert "100% delivered today." in page
    await destinations.pause(ctx, "google", reason="<b>blocked", until=None)
    while site.operator_state.checks.is_running:
        await asyncio.sleep(0)
    verdict = (await operator.get("/operator")).text.partition('id="verdict"')[2].partition('id="checks"')[0]
    assert "1 check warned" in verdict
    assert "&lt;b&gt;blocked" in verdict
    assert 'href="/operator/providers/google"' in verdict


async def test_nothing_is_called_normal_before_it_was_checked(operator: Browser) -> None:
    page = (await operator.get("/operator")).text
    assert "<strong>No problems so far</strong> · no results yet today · still checking" in page
    assert "All normal" not in page
