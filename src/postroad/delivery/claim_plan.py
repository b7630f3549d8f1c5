"""What a step of the dispatcher claims, and what it got."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from postroad.storage import queue, suppressions


@dataclass(slots=True)
class Plan:
    """What to claim in one step; `expired` are scheduled queues of which only expired recipients are claimed."""

    wanted: list[queue.ClaimRequest] = field(default_factory=list)
    expired: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Claims:
    """What was claimed in one step, and which of the addresses are suppressed."""

    rows: Sequence[queue.Claimed] = ()
    suppressed: Mapping[suppressions.SuppressionKey, suppressions.Suppression] = field(default_factory=dict)
    # Recipients whose time is over.
    expired: Sequence[queue.Expired] = ()

    def are_all_of(self, plan: Plan) -> bool:
        """Whether nothing is left of it: a scheduled queue that gave as many as were asked for may have more."""
        return not self.expired and len(self.rows) < min((one.limit for one in plan.wanted), default=1)
