"""What a step of the dispatcher claims, and what it got."""

from collections.abc import Mapping, Sequence

import msgspec

from postroad.storage import queue, suppressions


class Plan(msgspec.Struct):
    """What to claim in one step; `expired` are scheduled queues of which only expired recipients are claimed."""

    wanted: list[queue.ClaimRequest] = msgspec.field(default_factory=list)
    expired: set[str] = msgspec.field(default_factory=set)


class Claims(msgspec.Struct, frozen=True):
    """What was claimed in one step, and which of the addresses are suppressed."""

    rows: Sequence[queue.Claimed] = ()
    suppressed: Mapping[suppressions.SuppressionKey, suppressions.Suppression] = msgspec.field(default_factory=dict)
    # Recipients whose time is over.
    expired: Sequence[queue.Expired] = ()

    def are_all_of(self, plan: Plan) -> bool:
        """Whether nothing is left of it: a scheduled queue that gave as many as were asked for may have more."""
        return not self.expired and len(self.rows) < min((one.limit for one in plan.wanted), default=1)
