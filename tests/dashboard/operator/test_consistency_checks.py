"""The page of consistency checks."""

from postroad import context
from postroad.dashboard.framework import site as sites
from postroad.storage.operations import processes
from tests.dashboard.browser_client import Browser

PATH = "/operator/consistency"


async def test_a_check_is_started_and_its_result_is_shown(site: sites.Site, operator: Browser) -> None:
    assert "No check was started here" in (await operator.get(PATH)).text
    started = await operator.post(PATH)
    await site.operator_state.jobs._flights._wait()
    page = (await operator.follow(started)).text
    assert "<strong>No violations.</strong>" in page
    assert "<dt>Accounts</dt><dd>1</dd>" in page
    assert "finished" in (await operator.get(PATH)).text


async def test_violations_are_listed_as_text(ctx: context.Context, operator: Browser) -> None:
    now = ctx.clock()
    result = '{"counts":{"accounts":2},"findings":[{"check":"ledger","subject":"<b>x","detail":"off by 1"}]}'
    job_id = ctx.new_id("job_", now=now)
    async with ctx.store.transaction() as tx:
        job = processes.Job(
            job_id, "consistency_check", "the whole database", "finished", 9, 9, result, "", now, now, now
        )
        await processes.insert_job(tx, job)
    page = (await operator.get(f"/operator/jobs/{job_id}")).text
    assert "<strong>1 violation was found.</strong>" in page
    assert "&lt;b&gt;x" in page
    assert "<strong>1 violation</strong>" in (await operator.get(PATH)).text


async def test_only_one_runs_at_a_time(ctx: context.Context, operator: Browser) -> None:
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        job = processes.Job(
            ctx.new_id("job_", now=now), "consistency_check", "x", "running", 3, 9, "null", "", now, now
        )
        await processes.insert_job(tx, job)
    page = (await operator.get(PATH)).text
    assert "A check is running." in page
    assert "Start a check" not in page
    assert "3 of 9 checks" in page
    assert (await operator.post(PATH)).status_code == 409
