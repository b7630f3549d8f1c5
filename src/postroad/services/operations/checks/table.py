"""The table of checks, and the function that runs them: concurrently, each within its time.

A check that takes too long or fails with a bug is a finding, and does not affect the others. docs/doctor.md explains
each check; a test holds the page to this table.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from postroad import config
from postroad.services.operations.checks import certificates, connections, data, findings, host, names
from postroad.services.operations.checks import findings as check_findings
from postroad.telemetry import logs

# Longer than two DNS queries and a connection; every wait in a check is shorter.
CHECK_SECONDS: Final = 20.0
PAGE: Final = "docs/doctor.md"
_RANKS: Final = {state: rank for rank, state in enumerate(check_findings.State)}


class Scope(Enum):
    """Whether every host has its own result, or all hosts have one."""

    HOST = "host"
    INSTALLATION = "installation"


class Check(msgspec.Struct, frozen=True):
    run: Callable[[findings.Subject], Awaitable[Sequence[check_findings.Finding]]]
    scope: Scope = Scope.HOST


class Result(msgspec.Struct, frozen=True):
    """What one check found, at least one finding, and the URL of the page that explains it."""

    name: str
    findings: Sequence[check_findings.Finding]
    page: str

    @property
    def state(self) -> check_findings.State:
        """The worst of its findings."""
        return worst(finding.state for finding in self.findings)


CHECKS: Final[Mapping[str, Check]] = {
    "settings": Check(host.settings),
    "hostname": Check(names.hostname),
    "resolver": Check(names.resolver_works),
    "dnssec": Check(names.dnssec),
    "reverse_dns": Check(names.reverse_dns),
    "source_addresses": Check(connections.source_addresses),
    "blocklists": Check(names.blocklists),
    "port_25": Check(connections.port_25),
    "listeners": Check(connections.listeners),
    "certificates": Check(certificates.certificates),
    "secret_files": Check(certificates.secret_files),
    "single_sign_on": Check(data.single_sign_on),
    "database": Check(data.database),
    "key": Check(data.key),
    "disk": Check(data.disk),
    "clock": Check(host.clock),
    "open_files": Check(host.open_files),
    "roles": Check(host.roles, Scope.INSTALLATION),
    "partitions": Check(data.mail_partitions, Scope.INSTALLATION),
    "extensions": Check(data.event_formats, Scope.INSTALLATION),
    "operators": Check(data.second_factors_of_operators, Scope.INSTALLATION),
    "return_path": Check(connections.return_path, Scope.INSTALLATION),
}


def worst(states: Iterable[check_findings.State]) -> check_findings.State:
    return max(states, key=_RANKS.__getitem__)


async def run(given: findings.Subject, *, scopes: Sequence[Scope] = tuple(Scope)) -> Sequence[Result]:
    """Run the checks of these scopes; the results are in the order of the table."""
    chosen = {name: check for name, check in CHECKS.items() if check.scope in scopes}
    return await asyncio.gather(*(run_one(name, check, given) for name, check in chosen.items()))


async def run_one(name: str, check: Check, given: findings.Subject) -> Result:
    # The service itself serves its documentation.
    page = f"{config.base_url(given.settings)}/{PAGE}#{name}"
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return Result(name, await check.run(given), page)
    except TimeoutError:
        found = check_findings.warning(
            f"the check did not finish within {CHECK_SECONDS:.0f} seconds", "try again later"
        )
    except Exception as problem:  # noqa: BLE001 - a check that fails must not hide the others
        reason = logs.redact(f"{type(problem).__name__}: {problem}")
        found = check_findings.warning(f"the check failed: {reason}", "please report this as a bug")
    return Result(name, [found], page)
