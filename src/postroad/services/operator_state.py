"""What the operator API and the operator console of a process share: work in progress, and results kept for a while."""

import msgspec

from postroad.services import operator_jobs
from postroad.services.maintenance import installation_health
from postroad.services.queue import queue_summary


class OperatorState(msgspec.Struct, frozen=True):
    """The jobs of the process, the last run of its checks and its last count of the queue."""

    jobs: operator_jobs.Jobs
    checks: installation_health.Checks = msgspec.field(default_factory=installation_health.Checks)
    queue: queue_summary.QueueSummary = msgspec.field(default_factory=queue_summary.QueueSummary)

    async def close(self) -> None:
        """End work in progress."""
        await self.checks.close()
        await self.queue.close()
        await self.jobs.close()
