"""`/v1/operator/jobs`: long work and its progress, and the consistency check."""

import asyncio
from typing import Any

import msgspec

from postroad import context
from postroad.services.operations import operator_jobs, operator_state
from postroad.storage.operations import processes as stored_jobs
from tests import contexts
from tests.api import app_server
from tests.api.operator.conftest import Operator

PATH = "/v1/operator/jobs"


async def test_a_consistency_check_runs_and_tells_what_it_found(ctx: context.Context, operator: Operator) -> None:
    async with ctx.store.transaction() as tx:
        await tx.run_script("UPDATE accounts SET available = 7")
    started = await operator.http.post("/v1/operator/consistency-checks")
    assert started.status_code == 202, started.text
    job: dict[str, Any] = started.json()["job"]
    assert (job["kind"], job["state"], job["created_by"]) == ("consistency_check", "running", operator.user_id)
    while job["state"] == "running":
        await asyncio.sleep(0.01)
        job = (await operator.http.get(f"{PATH}/{job['id']}")).json()["job"]
    assert (job["state"], job["done"], job["total"]) == ("finished", 19, 19)
    assert [one["check"] for one in job["result"]["findings"]] == ["balances"]
    assert job["result"]["counts"]["accounts"] == 1
    assert [one["id"] for one in (await operator.http.get(PATH)).json()["jobs"]] == [job["id"]]


async def test_one_of_a_kind_runs_at_a_time_until_it_is_silent_for_long(
    ctx: context.Context, clock: contexts.Clock, operator: Operator, state: operator_state.OperatorState
) -> None:
    may_end = asyncio.Event()

    async def work(report: operator_jobs.Report) -> int:
        await report(3, {"changed": 2})
        await may_end.wait()
        return 1

    job = await state.jobs.start(ctx, "consistency_check", "x", work)
    while (await operator_jobs.find(ctx, job.id)).done == 0:
        await asyncio.sleep(0.01)
    second = await operator.http.post("/v1/operator/consistency-checks")
    assert (second.status_code, second.json()["code"]) == (409, "conflict")
    shown = (await operator.http.get(f"{PATH}/{job.id}")).json()["job"]
    assert (shown["state"], shown["done"], shown["result"]) == ("running", 3, {"changed": 2})
    clock.pass_seconds(901)
    assert (await operator.http.get(f"{PATH}/{job.id}")).json()["job"]["state"] == "interrupted"
    assert (await operator.http.post("/v1/operator/consistency-checks")).status_code == 202
    await state.close()


async def test_a_job_that_fails_says_so_and_the_log_says_why(
    ctx: context.Context, operator: Operator, state: operator_state.OperatorState, lines: app_server.CapturedLog
) -> None:
    async def work(_report: operator_jobs.Report) -> int:
        raise RuntimeError("secret detail")

    job = await state.jobs.start(ctx, "x", "y", work)
    await state.jobs._flights._wait()
    shown = (await operator.http.get(f"{PATH}/{job.id}")).json()["job"]
    assert (shown["state"], shown["result"]) == ("failed", operator_jobs.FAILURE)
    assert [(line["event"], line["job_id"], line["exc_info"]) for line in lines.kept] == [
        ("operator_job_failed", job.id, True)
    ]


async def test_an_unknown_job_does_not_exist_and_old_ones_are_deleted(
    ctx: context.Context, clock: contexts.Clock, operator: Operator, state: operator_state.OperatorState
) -> None:
    for name in ("job_00000000000000ffffffffffffff", "x"):
        assert (await operator.http.get(f"{PATH}/{name}")).status_code == 404

    async def work(_report: operator_jobs.Report) -> int:
        return 1

    await state.jobs.start(ctx, "x", "old", work)
    await state.jobs._flights._wait()
    clock.pass_seconds(31 * 86400)
    await state.jobs.start(ctx, "x", "new", work)
    await state.jobs._flights._wait()
    async with ctx.store.reading() as tx:
        left = await stored_jobs.latest_jobs(tx, limit=9)
    assert [(one.subject, msgspec.json.decode(one.result)) for one in left] == [("new", 1)]
