"""What mailbox providers make of the mail: one line, and a word for each provider.

Pure, for an account and for the installation. It only shows: what is refused and reported leads to pauses, lower rates
and suspensions by the rules of delivery and of the bounce guard.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from postroad.dashboard.framework import verdicts
from postroad.model.bounces import bounce_guard
from postroad.model.delivery import providers
from postroad.services.accounts import statistics

# Single refusals are an opinion about a message; one of twenty is one about the sender.
BLOCKED_PERCENT: Final = 5
# From the best on.
Standing = Literal["few", "good", "deferring", "complaints", "blocking"]
Kind = Literal["good", "warn", "bad", "unknown"]
_ORDER: Final[Sequence[Standing]] = ("few", "good", "deferring", "complaints", "blocking")


class ProviderRow(msgspec.Struct, frozen=True):
    """The results at a provider. Complaints matter from so many percent of what was delivered on."""

    counts: statistics.ProviderCounts
    complaint_percent: float

    @property
    def title(self) -> str:
        return providers.NAMES.get(self.counts.name, "other providers")

    @property
    def attempts(self) -> int:
        return self.counts.ended + self.counts.deferred

    @property
    def standing(self) -> Standing:
        """The worst of what is true."""
        counts = self.counts
        if self.attempts < statistics.MIN_RESULTS:
            return "few"
        if counts.ended and 100 * counts.blocked >= BLOCKED_PERCENT * counts.ended:
            return "blocking"
        if (
            counts.complaints >= bounce_guard.MIN_COMPLAINTS
            and 100 * counts.complaints >= self.complaint_percent * counts.delivered
        ):
            return "complaints"
        return "deferring" if verdicts.is_deferring(counts.deferred, self.attempts) else "good"


class Verdict(msgspec.Struct, frozen=True):
    """The line: its kind for the eye, what is most wrong, and the figures behind it."""

    kind: Kind
    title: str
    text: str


def assess(rows: Sequence[ProviderRow], *, guard: str = "ok") -> Verdict:
    """What is most wrong. `guard` is the state of the account's bounce guard."""
    blocked = sum(row.counts.blocked for row in rows)
    ended = sum(row.counts.ended for row in rows)
    deferred = sum(row.counts.deferred for row in rows)
    complaints = sum(row.counts.complaints for row in rows)
    text = f"{_percent(blocked, ended)} blocked, {_percent(deferred, ended + deferred)} of attempts deferred"
    if complaints:
        text += f", {complaints:,} reported as spam"
    nothing = ProviderRow(statistics.ProviderCounts("", 0, 0, 0, 0), 0)
    worst = max(rows, key=lambda row: (_ORDER.index(row.standing), row.attempts), default=nothing)
    counts = worst.counts
    words: Mapping[Standing, tuple[Kind, str]] = {
        "few": ("unknown", "Too little mail to judge"),
        "good": ("good", "Providers accept the mail"),
        "deferring": (
            "warn",
            f"{_percent(counts.deferred, worst.attempts)} of the attempts at {worst.title} are deferred",
        ),
        "complaints": ("warn", f"{counts.complaints:,} people at {worst.title} reported spam"),
        "blocking": ("bad", f"{_percent(counts.blocked, counts.ended)} of the mail to {worst.title} is blocked"),
    }
    kind, title = words[worst.standing]
    if guard == "suspended":
        kind, title = "bad", "The bounce guard suspended sending"
    elif guard == "warned" and worst.standing not in ("complaints", "blocking"):
        kind, title = "warn", "The bounce guard warns you"
    return Verdict(kind, title, text)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if 0 < part < whole else f"{100 * part / (whole or 1):.0f}%"
