"""What was seen of a day: times to delivery by account and by kind of destination, attempts, connections, the queue."""

import array
import collections
import math
import typing

# Times to delivery are counted in classes, eight for each doubling: a percentile is exact to 9 %.
CLASSES_PER_DOUBLING, FIRST_SECONDS, CLASSES = 8, 0.05, 200
# What an account expects: its share of mail that was delivered this soon, of all that could be delivered.
PROMPT_SECONDS = 60.0
# How often the queue is looked at: in a day every five minutes.
SAMPLES, MIN_SAMPLE_SECONDS = 288, 5.0


class Times:
    """A distribution of times."""

    def __init__(self) -> None:
        self._counts = array.array("Q", bytes(8 * CLASSES))
        self.count = self.prompt = 0
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        place = int(CLASSES_PER_DOUBLING * math.log2(seconds / FIRST_SECONDS)) + 1 if seconds > FIRST_SECONDS else 0
        self._counts[min(place, CLASSES - 1)] += 1
        self.count += 1
        self.total += seconds
        self.prompt += seconds <= PROMPT_SECONDS

    def percentile(self, part: float) -> float:
        """The end of the class in which a percentile is; not a number when nothing was counted."""
        left = part * self.count
        for place, count in enumerate(self._counts):
            left -= count
            if left < 0 and count:
                return float(FIRST_SECONDS * 2 ** (place / CLASSES_PER_DOUBLING))
        return math.nan


class Sample(typing.NamedTuple):
    """A moment."""

    at: float
    queued: int
    connections: int
    in_outage: int  # queued for destinations that have an outage today


class Measurements:
    """The figures of a day."""

    def __init__(self) -> None:
        self.by_account: dict[str, Times] = collections.defaultdict(Times)
        self.by_kind: dict[str, Times] = collections.defaultdict(Times)
        self.attempts: collections.Counter[str] = collections.Counter()
        self.wasted: collections.Counter[str] = collections.Counter()
        self.ended: collections.Counter[str] = collections.Counter()
        self.refused: collections.Counter[str] = collections.Counter()
        self.samples: list[Sample] = []

    def recorded(self, kind: str, status: str, *, is_attempt: bool) -> None:
        """A result was recorded."""
        if is_attempt:
            self.attempts[kind] += 1
            self.wasted[kind] += status == "deferred"
        if status != "deferred":
            self.ended[status] += 1

    def delivered(self, account_id: str, kind: str, seconds: float) -> None:
        """A message has arrived."""
        self.by_account[account_id].add(seconds)
        self.by_kind[kind].add(seconds)

    def fairness(self, accounts: typing.Iterable[str]) -> float:
        """Jain's index of what the accounts got: the part of an account's mail that was delivered promptly."""
        found = [self.by_account[one] for one in accounts if one in self.by_account]
        return jain([one.prompt / one.count for one in found])

    def drained_at(self, *, since: float, queued: int) -> float:
        """When the mail that waited for destinations with an outage was no more than this, after a time."""
        return next((one.at for one in self.samples if one.at >= since and one.in_outage <= queued), math.nan)


def jain(shares: typing.Sequence[float]) -> float:
    """Jain's index: 1 when all have the same, 1/n when one has everything."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else math.nan
