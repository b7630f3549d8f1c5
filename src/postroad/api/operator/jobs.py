"""`/v1/operator/jobs`: long work that an operator has started, and the consistency check."""

from typing import Annotated, Any, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.model.units import identifiers, times
from postroad.services.operations import operator_jobs
from postroad.storage.operations import processes
from postroad.web import routing

RESOURCE: Final = resource.Resource("Jobs", {"id": identifiers.pattern(identifiers.JOB)})


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Work in the background."""

    id: str
    kind: Annotated[
        str, msgspec.Meta(description="`queue.retry`, `queue.cancel`, `queue.expire` or `consistency_check`.")
    ]
    subject: Annotated[str, msgspec.Meta(description="What it is about, in words.")]
    state: Annotated[
        Literal["running", "finished", "failed", "interrupted"],
        msgspec.Meta(description="`interrupted`: its process has stopped; start it again."),
    ]
    done: Annotated[int, msgspec.Meta(description="Rows or checks examined so far.")]
    total: Annotated[int | None, msgspec.Meta(description="How many there are; null if unknown.")]
    result: Annotated[
        Any, msgspec.Meta(description="`changed` of the queue, or `counts` and `findings` of a consistency check.")
    ]
    created_by: Annotated[str | None, msgspec.Meta(description="The user who started it; null for an API key.")]
    created_at: times.WireTime
    updated_at: times.WireTime
    finished_at: times.WireTime | None


class JobResponse(resource.Response, frozen=True):
    """One job."""

    job: Job


class Jobs(resource.Response, frozen=True):
    """The latest jobs, newest first."""

    jobs: list[Job]


def shown(ctx: context.Context, job: processes.Job) -> Job:
    """A job as it is now."""
    return resource.from_record(
        Job,
        job,
        state=operator_jobs.state_of(job, now=ctx.clock()),
        result=msgspec.json.decode(job.result),
        created_by=job.created_by or None,
    )


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List the latest jobs."""
    found = [shown(ctx, job) for job in await operator_jobs.listed(ctx)]
    return routing.Response(200, Jobs(found, request_id=request.id))


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a job with its progress."""
    job = await operator_jobs.find(ctx, request.path["id"])
    return routing.Response(200, JobResponse(shown(ctx, job), request_id=request.id))


def routes(jobs: operator_jobs.Jobs) -> tuple[resource.OperatorRoute, ...]:
    """The routes, with the jobs that this process runs."""

    async def check(ctx: context.Context, request: routing.Request) -> routing.Response:
        """Start a consistency check.

        It checks over the whole database that the ledger, counts and statuses agree, as `postroad verify` does, and
        lists what does not. Delivery continues meanwhile.
        """
        job = await operator_jobs.start_consistency_check(ctx, jobs)
        return routing.Response(202, JobResponse(shown(ctx, job), request_id=request.id))

    return (
        resource.operator_route(RESOURCE, "GET /v1/operator/jobs", index, responses={200: Jobs}),
        resource.operator_route(RESOURCE, "GET /v1/operator/jobs/{id}", show, responses={200: JobResponse}),
        resource.operator_route(
            RESOURCE,
            "POST /v1/operator/consistency-checks",
            check,
            responses={202: JobResponse},
            errors=(errors.Conflict,),
        ),
    )
