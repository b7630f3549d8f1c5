"""The monitor: a process repeats the checks, exports their states, logs those that change, and tells the operators.

Every process checks its own host. Results of the whole installation are checked by one process: the oldest of those
that run the maintenance role.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from postroad import context, errors
from postroad.mail import notice_kinds, notice_outbox
from postroad.network import hostname
from postroad.services.operations.checks import data, findings, table
from postroad.services.queue import sources
from postroad.telemetry import logs

ROLE: Final = "maintenance"
VALUES: Final[Mapping[findings.State, float]] = {
    findings.State.OK: 0,
    findings.State.WARNING: 1,
    findings.State.ERROR: 2,
}


class Monitor:
    """Remembers the states of the last round."""

    def __init__(self, ctx: context.Context, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._states: dict[str, findings.State] = {}

    async def run(self) -> None:
        given = await findings.of_context(self._ctx)
        scopes = tuple(table.Scope) if _is_first(given) else (table.Scope.HOST,)
        results = await table.run(given, scopes=scopes)
        self._ctx.metrics.checks.replace(
            {(result.name,): VALUES[result.state] for result in results if result.state in VALUES}
        )
        await self._notify(self._log_changes(results))
        await self._pause_listed(results)
        try:
            await data.sample(given)
        except (errors.PostroadError, OSError) as problem:
            self._log.warning("disk_sample_failed", error=str(problem))

    def _log_changes(self, results: Sequence[table.Result]) -> list[table.Result]:
        """Log what has changed since the last round; returns what is worse than before."""
        worse = []
        for result in results:
            before = self._states.get(result.name, findings.State.OK)
            self._states[result.name] = result.state
            was_bad, is_bad = VALUES.get(before, 0), VALUES.get(result.state, 0)
            if was_bad == is_bad:
                continue
            if is_bad > was_bad:
                worse.append(result)
            log = self._log.warning if is_bad else self._log.info
            for each in result.findings:
                if each.state is result.state:
                    fields = {"found": each.found, "advice": each.advice, "documentation": result.page}
                    log("check_changed", check=result.name, state=result.state, before=before, **fields)
        return worse

    async def _pause_listed(self, results: Sequence[table.Result]) -> None:
        listed = dict(each.listed for result in results for each in result.findings if each.listed is not None)
        if not listed:
            return
        try:
            await sources.pause_listed(self._ctx, listed)
        except errors.PostroadError as problem:
            self._log.warning("source_pause_failed", error=problem.message)

    async def _notify(self, worse: Sequence[table.Result]) -> None:
        """Tell the operators. The processes of a host find the same, and tell it once."""
        if not worse:
            return
        told = [_notice(result, hostname.short_name()) for result in worse]
        try:
            async with self._ctx.store.transaction() as tx:
                await notice_outbox.write(tx, told, now=self._ctx.clock(), entropy=self._ctx.entropy)
        except errors.PostroadError as problem:
            self._log.warning("check_notice_failed", error=problem.message)
            for result in worse:  # found again in the next round
                del self._states[result.name]


def _notice(result: table.Result, host: str) -> notice_outbox.NewNotice:
    found = [finding for finding in result.findings if finding.state is result.state]
    values = {
        "check": result.name,
        "host": host,
        "found": "; ".join(finding.found for finding in found),
        "advice": "; ".join(dict.fromkeys(finding.advice for finding in found if finding.advice)),
        "page": result.page,
    }
    kind = notice_kinds.CHECK_FAILED if result.state is findings.State.ERROR else notice_kinds.CHECK_WARNING
    return notice_outbox.NewNotice(kind=kind, subject=f"{host} {result.name}", values=values)


def _is_first(given: findings.Subject) -> bool:
    """Whether this process is the one that checks the whole installation."""
    eligible = [process.name for process in given.running if ROLE in process.roles]
    return eligible[:1] == [hostname.process_name()]
