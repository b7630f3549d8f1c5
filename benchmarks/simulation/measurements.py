"""What was seen of a day: times to delivery by account and by kind of destination, attempts, connections, the queue."""

import array
import collections
import math
import typing

import msgspec

# Times to delivery are counted in classes, eight for each doubling: a percentile is exact to 9 %.
CLASSES_PER_DOUBLING, FIRST_SECONDS, CLASSES = 8, 0.05, 200
# What an account expects: its share of mail that was delivered this soon, of all that could be delivered.
PROMPT_SECONDS = 60.0
# How often the queue is looked at: in a day every five minutes.
SAMPLES, MIN_SAMPLE_SECONDS = 288, 5.0
# Of fewer messages, the part that was delivered promptly says nothing about an account.
MIN_MESSAGES = 100
# Accounts by size: the ten largest, those after them, and so on.
SIZE_CLASSES = (10, 100, 1000)


class Waits(msgspec.Struct, frozen=True):
    """A distribution of times, as far as it is shown; percentiles are None when nothing was counted."""

    count: int
    total: float
    prompt: int
    p50: float | None
    p90: float | None
    p99: float | None


class Times:
    """A distribution of times while it is counted."""

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

    def merge(self, other: "Times") -> None:
        """Count all of another distribution."""
        self._counts = array.array("Q", map(sum, zip(self._counts, other._counts, strict=True)))  # noqa: SLF001
        self.count += other.count
        self.prompt += other.prompt
        self.total += other.total

    def waits(self) -> Waits:
        """What is shown of it."""
        percentiles = [self.percentile(part) for part in (0.5, 0.9, 0.99)]
        return Waits(self.count, self.total, self.prompt, *percentiles)

    def percentile(self, part: float) -> float | None:
        """The end of the class in which a percentile is; None when nothing was counted."""
        left = part * self.count
        for place, count in enumerate(self._counts):
            left -= count
            if left < 0 and count:
                return float(FIRST_SECONDS * 2 ** (place / CLASSES_PER_DOUBLING))
        return None


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """A moment: by kind of destination, what is queued, the connections, and attempts since the day began."""

    at: float
    queued: dict[str, int]
    connections: dict[str, int]
    attempts: dict[str, int]
    deferred: dict[str, int]


class Measurements:
    """The figures of a day, while it goes on."""

    def __init__(self) -> None:
        self.by_account: dict[str, Times] = collections.defaultdict(Times)
        self.by_kind: dict[str, Times] = collections.defaultdict(Times)
        self.attempts: collections.Counter[str] = collections.Counter()
        self.deferred: collections.Counter[str] = collections.Counter()
        self.ended: collections.Counter[str] = collections.Counter()
        self.refused: collections.Counter[str] = collections.Counter()
        self.samples: list[Sample] = []

    def recorded(self, kind: str, status: str, *, is_attempt: bool) -> None:
        """A result was recorded."""
        if is_attempt:
            self.attempts[kind] += 1
        if status != "deferred":
            self.ended[status] += 1
        elif is_attempt:
            self.deferred[kind] += 1

    def delivered(self, account_id: str, kind: str, seconds: float) -> None:
        """A message has arrived."""
        self.by_account[account_id].add(seconds)
        self.by_kind[kind].add(seconds)

    def sample(self, at: float, queued: typing.Mapping[str, int], connections: typing.Mapping[str, int]) -> None:
        """Note a moment."""
        self.samples.append(Sample(at, dict(queued), dict(connections), dict(self.attempts), dict(self.deferred)))

    def prompt_shares(self, accounts: typing.Iterable[str]) -> list[float]:
        """The part of its mail that was delivered promptly, for each account that has enough of it."""
        found = [self.by_account[account] for account in accounts if account in self.by_account]
        return [account.prompt / account.count for account in found if account.count >= MIN_MESSAGES]

    def by_size(self, accounts: typing.Sequence[str]) -> dict[str, Waits]:
        """Times of accounts by their size; the largest come first."""
        found: dict[str, Waits] = {}
        begins = 0
        for ends in (*SIZE_CLASSES, len(accounts)):
            together = Times()
            for account_id in accounts[begins:ends]:
                if account_id in self.by_account:
                    together.merge(self.by_account[account_id])
            if begins < len(accounts):
                found[f"{begins + 1:,} to {min(ends, len(accounts)):,}"] = together.waits()
            begins = ends
        return found


def jain(shares: typing.Sequence[float]) -> float | None:
    """Jain's index: 1 when all have the same, 1/n when one has everything; None when there is nobody."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else None
