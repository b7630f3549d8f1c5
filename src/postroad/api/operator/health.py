"""`/v1/operator/health` and `/v1/operator/checks`: the state of the installation."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from postroad import context
from postroad.api.v1 import resource
from postroad.model.units import times
from postroad.services.operations import operator_state
from postroad.services.operations.checks import findings, table
from postroad.web import routing

RESOURCE: Final = resource.Resource("Health")
CheckState = Literal["ok", "skipped", "warning", "error"]
OverallState = Literal["ok", "warning", "error"]
# What does not apply is no problem.
_WORST: Final[Mapping[findings.State, OverallState]] = {
    findings.State.OK: "ok",
    findings.State.SKIPPED: "ok",
    findings.State.WARNING: "warning",
    findings.State.ERROR: "error",
}


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the service that has reported itself within the last hour."""

    name: Annotated[str, msgspec.Meta(description="The host's short name and the process id, as in log lines.")]
    host: str
    process_id: int
    roles: list[str]
    version: str
    alive: Annotated[bool, msgspec.Meta(description="Whether it has reported itself within the last 90 seconds.")]
    started_at: times.WireTime
    seen_at: Annotated[times.WireTime, msgspec.Meta(description="Its last report.")]
    rates: Annotated[
        dict[str, float],
        msgspec.Meta(
            description="What it did in a second before its last report: messages `accepted`, recipients by final "
            "status, and attempts that were `deferred`."
        ),
    ]


class StoreSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the database."""

    engine: Literal["sqlite", "postgres"]
    bytes: int
    free_bytes: Annotated[
        int | None, msgspec.Meta(description="Bytes that are free for new rows; null with PostgreSQL.")
    ]
    disk_free_bytes: Annotated[
        int | None, msgspec.Meta(description="Free bytes of its file system; null with PostgreSQL.")
    ]
    growth_bytes_per_day: Annotated[
        int | None, msgspec.Meta(description="Growth of its file system, averaged over the last week; null if unknown.")
    ]


class ListenerCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """The certificate of a listener."""

    listener: str
    source: Literal["file", "acme"]
    names: list[str]
    expires_at: times.WireTime | None
    problem: Annotated[str, msgspec.Meta(description="Why there is none, or no newer one; empty if all is well.")]


class InstallationHealth(resource.Response, frozen=True, kw_only=True):
    """The processes, the store and the certificates of the installation."""

    now: times.WireTime
    processes: list[Process]
    store: StoreSize
    certificates: list[ListenerCertificate]


class CheckFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found."""

    name: str
    state: CheckState
    found: str
    advice: str
    documentation: str


class CheckResults(resource.Response, frozen=True, kw_only=True):
    """The checks of `postroad doctor` on the host that answers."""

    state: Annotated[OverallState, msgspec.Meta(description="The worst state of all.")]
    checked_at: times.WireTime
    findings: list[CheckFinding]


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get the processes, the store and the certificates of the installation."""
    found = await operator_state.read_health(ctx)
    size = found.store
    return routing.Response(
        200,
        InstallationHealth(
            now=times.to_wire(found.now),
            processes=[
                resource.from_record(
                    Process,
                    process,
                    roles=list(process.roles),
                    alive=found.is_alive(process),
                    rates=msgspec.json.decode(process.rates or "{}"),
                )
                for process in found.processes
            ],
            store=StoreSize(
                engine="sqlite" if size.engine == "sqlite" else "postgres",
                bytes=size.size,
                free_bytes=size.free,
                disk_free_bytes=size.disk_free,
                growth_bytes_per_day=None if size.daily_growth is None else round(size.daily_growth),
            ),
            certificates=[
                resource.from_record(ListenerCertificate, certificate, names=list(certificate.names))
                for certificate in found.certificates
            ],
            request_id=request.id,
        ),
    )


def routes(checks: operator_state.Checks) -> tuple[resource.OperatorRoute, ...]:
    """The routes, with the checks that this process runs."""

    async def check(ctx: context.Context, request: routing.Request) -> routing.Response:
        """Run the checks of `postroad doctor` on the host that answers.

        They may take up to 20 seconds; results are kept for a minute.
        """
        run = await checks.read(ctx)
        return routing.Response(
            200,
            CheckResults(
                state=_WORST[table.worst(result.state for result in run.results)],
                checked_at=times.to_wire(run.at),
                findings=[
                    CheckFinding(
                        name=result.name,
                        state=each.state.value,
                        found=each.found,
                        advice=each.advice,
                        documentation=result.page,
                    )
                    for result in run.results
                    for each in result.findings
                ],
                request_id=request.id,
            ),
        )

    return (
        resource.operator_route(RESOURCE, "GET /v1/operator/health", show, responses={200: InstallationHealth}),
        resource.operator_route(RESOURCE, "GET /v1/operator/checks", check, responses={200: CheckResults}),
    )
