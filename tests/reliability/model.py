"""What the service should do, as plain as can be: a dictionary of keys, a balance an account, a list of messages.

`ModelState.expected` is the order of checks of a send: key, suspension, rate, sender domain, credits. Requests that ran
at the same time are right when there is some order, one after the other, in which the model gives every one of them the
answer that it got: `explain` looks for it. Of the rate it knows the two bounds: never are more accepted than the rate
allows, by all processes together, and nobody is refused who asked no more often than that.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from postroad.mail.accept import transaction

SECOND: Final = 1_000_000
KEY_LIFE: Final = 24 * 60 * 60 * SECOND

ACCEPTED, REPLAYED = "accepted", "replayed"
RATE_LIMITED, SUSPENDED, FORBIDDEN = "rate_limited", "account_suspended", "forbidden"
POOR, CONFLICT, IN_PROGRESS = "insufficient_credits", "idempotency_conflict", "idempotency_in_progress"
AWAY = "service_unavailable"

# An answer is the receipt, or the code word of the refusal.
Answer = transaction.Accepted | str


@dataclass(frozen=True, slots=True)
class Send:
    """A request as its caller wrote it. Two that are equal have the same body."""

    credential: str
    key: str | None
    domain: str
    to: tuple[str, ...]
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    # How long the text is.
    words: int = 1
    # As a finished message, over SMTP.
    is_raw: bool = False

    @property
    def scope(self) -> tuple[str, str] | None:
        """What the key belongs to; None when there is none."""
        return None if self.key is None else (self.credential, self.key)

    @property
    def recipients(self) -> set[str]:
        """Addresses are the same whatever their case, and wherever they are written."""
        return {address.lower() for address in (*self.to, *self.cc, *self.bcc)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A request, the id it ran under, whether its rate may refuse it, and what it was answered; None: nobody knows."""

    send: Send
    request_id: str
    may_be_limited: bool
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class Account:
    """An account's balance and state."""

    available: int = 0
    reserved: int = 0
    entries: int = 0
    suspended: bool = False
    domains: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UsedKey:
    """A key, the request it came with, and the answer that it repeats."""

    send: Send
    answer: transaction.Accepted
    expires_at: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """The rate of an account, wherever it sends: microseconds that have not been spent."""

    interval: int
    most: int
    level: int
    filled_at: int

    def at(self, now: int) -> "Bucket":
        return dataclasses.replace(self, level=min(self.most, self.level + now - self.filled_at), filled_at=now)

    def has_one(self, now: int) -> bool:
        return self.at(now).level >= self.interval

    def take(self, now: int) -> "Bucket":
        """Spend one interval, or what there is."""
        filled = self.at(now)
        return dataclasses.replace(filled, level=max(0, filled.level - self.interval))


@dataclass(slots=True)
class ModelState:
    """Everything that must be stored, and nothing else may be."""

    # The account of each credential.
    owners: dict[str, str]
    accounts: dict[str, Account]
    keys: dict[tuple[str, str], UsedKey] = field(default_factory=dict)
    messages: dict[str, Send] = field(default_factory=dict)
    # What accepted mail has left of each account's rate.
    rates: dict[str, Bucket] = field(default_factory=dict)

    def copy(self) -> "ModelState":
        """A copy that can be changed without changing this one; their entries never change."""
        return ModelState(self.owners, dict(self.accounts), dict(self.keys), dict(self.messages), dict(self.rates))

    def change(self, account_id: str, **changes: object) -> None:
        """Replace members of an account."""
        self.accounts[account_id] = dataclasses.replace(self.accounts[account_id], **changes)  # type: ignore[arg-type]

    def grant(self, account_id: str, amount: int) -> None:
        account = self.accounts[account_id]
        self.change(account_id, available=account.available + amount, entries=account.entries + 1)

    def used(self, send: Send, now: int) -> UsedKey | None:
        """The key of a request, if it was used in the last 24 hours."""
        used = None if send.scope is None else self.keys.get(send.scope)
        return used if used is not None and used.expires_at > now else None

    def sweep(self, now: int) -> None:
        self.keys = {scope: used for scope, used in self.keys.items() if used.expires_at > now}

    def expected(self, send: Send, *, now: int, limited: bool) -> str:
        """The answer in one word, if the rate refuses it or does not."""
        used, account = self.used(send, now), self.accounts[self.owners[send.credential]]
        if used is not None:
            return REPLAYED if used.send == send else CONFLICT
        if account.suspended:
            return SUSPENDED
        if limited:
            return RATE_LIMITED
        if send.domain not in account.domains:
            return FORBIDDEN
        return POOR if account.available < len(send.recipients) else ACCEPTED

    def agrees(self, outcome: Outcome, *, now: int) -> bool:
        """Whether a request that ran now would have got this answer."""
        send, answer = outcome.send, outcome.answer
        limited = answer == RATE_LIMITED and outcome.may_be_limited
        expected = self.expected(send, now=now, limited=limited)
        if isinstance(answer, transaction.Accepted) and answer.replayed:
            used = self.used(send, now)
            first = repeated(used.answer) if used else None
            return expected == REPLAYED and repeated(answer) == first
        if isinstance(answer, transaction.Accepted):
            return expected == ACCEPTED and self.rates[self.owners[send.credential]].has_one(now)
        return expected == answer

    def apply(self, outcome: Outcome, *, now: int) -> None:
        """Write down what a new message changes; nothing else changes anything."""
        send, answer = outcome.send, outcome.answer
        if not isinstance(answer, transaction.Accepted) or answer.replayed:
            return
        account_id, count = self.owners[send.credential], len(send.recipients)
        account = self.accounts[account_id]
        self.change(
            account_id,
            available=account.available - count,
            reserved=account.reserved + count,
            entries=account.entries + 1,
        )
        self.messages[answer.message_id] = send
        self.rates[account_id] = self.rates[account_id].take(now)
        if send.scope is not None:
            self.keys[send.scope] = UsedKey(send, answer, now + KEY_LIFE)


def repeated(first: transaction.Accepted) -> transaction.Accepted:
    """An answer as a replay gives it: the same id, the same request id, the same bytes."""
    return transaction.Accepted(first.message_id, first.request_id, first.response, replayed=True)


def is_new(outcome: Outcome) -> bool:
    """Whether the request made a message; no other changes the state."""
    return isinstance(outcome.answer, transaction.Accepted) and not outcome.answer.replayed


def explain(books: ModelState, outcomes: Sequence[Outcome], *, now: int) -> ModelState | None:
    """The state after these outcomes in some order that explains them all; None when there is none."""
    # What changes nothing may stand at the first place where it fits.
    left = [outcome for outcome in outcomes if is_new(outcome) or not books.agrees(outcome, now=now)]
    if not left:
        return books
    for place, outcome in enumerate(left):
        if is_new(outcome) and books.agrees(outcome, now=now):
            after = books.copy()
            after.apply(outcome, now=now)
            explained = explain(after, [*left[:place], *left[place + 1 :]], now=now)
            if explained is not None:
                return explained
    return None
