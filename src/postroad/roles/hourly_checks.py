"""The hourly checks of a process: what `postroad doctor` prints, as metrics and log lines."""

from typing import Final

from postroad.roles import role
from postroad.services.checks import monitor

INTERVAL_SECONDS: Final = 60 * 60
# By then this process and those that started with it listen and have reported themselves.
FIRST_SECONDS: Final = 5 * 60


async def start(role_context: role.RoleContext) -> role.Started:
    """Check this host every hour until the process stops."""
    checks = monitor.Monitor(role_context.context, role_context.log)

    async def run(role_context: role.RoleContext) -> None:
        try:
            await checks.run()
        except Exception:
            role_context.log.exception("checks_failed")

    async def work() -> None:
        await role.sleep(role_context, FIRST_SECONDS)
        while not role_context.stopping.is_set():
            await role.until_stopped(role_context, run)
            await role.sleep(role_context, INTERVAL_SECONDS)

    return role.Started(work)
