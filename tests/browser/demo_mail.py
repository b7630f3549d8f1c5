"""Mail of the demo account's last thirty days: accepted and ended by the services themselves, at times long gone.

Chance is fixed, so every run has the same mail. Most of it is delivered at once; some is deferred first, some bounces,
some fails, and what came last still waits for its next attempt. Nothing of it is sent: the service that would is not
running while this is written.
"""

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from postroad.model import caller, identifiers, mail, send_request, times
from postroad.model.bounces import disposition
from postroad.services import context
from postroad.services.acceptance import submit
from postroad.services.results import outcomes
from postroad.storage import attempts, queue, recipients

DAYS: Final = 30
WORKER: Final = "mail-1:4211:5e1f0a2b"
MINUTE: Final = 60 * times.SECOND
TLS: Final = "TLSv1.3"
# Mail by hour of the day: few write at night, most in the morning.
HOURS: Final = (1, 1, 1, 1, 1, 2, 4, 7, 11, 12, 11, 9, 8, 9, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)

FIRST_NAMES: Final = "ada grace alan edsger barbara donald margaret linus radia ken frances dennis hedy tim".split()
LAST_NAMES: Final = "lovelace hopper turing dijkstra liskov knuth hamilton perlman allen ritchie lamarr".split()


@dataclass(frozen=True, slots=True)
class Destination:
    """Where mail goes, and how often it is deferred, bounces and fails there, in a thousand."""

    domain: str
    provider_queue: str
    host: str
    address: str
    weight: int
    deferred: int
    bounced: int
    failed: int


@dataclass(frozen=True, slots=True)
class Kind:
    """What is sent, by whom, how often."""

    sender: str
    subject: str
    text: str
    html: str
    tags: tuple[str, ...]
    source: mail.Source
    weight: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What a destination said, and what that means."""

    verdict: disposition.Verdict
    fault: disposition.Fault | None
    reason: str
    code: int | None
    enhanced: str
    text: str
    stage: str


DESTINATIONS: Final = (
    Destination("gmail.com", "google", "gmail-smtp-in.l.google.com", "142.250.27.26", 46, 25, 9, 2),
    Destination("outlook.com", "microsoft", "outlook-com.olc.protection.outlook.com", "52.101.73.6", 22, 70, 14, 12),
    Destination("icloud.com", "apple", "mx01.mail.icloud.com", "17.57.156.30", 10, 20, 8, 3),
    Destination("yahoo.com", "yahoo", "mta5.am0.yahoodns.net", "67.195.204.77", 9, 110, 16, 22),
    Destination("bakery.example", "others", "mx1.bakery.example", "203.0.113.25", 8, 40, 20, 5),
    Destination("museum.example", "others", "mail.museum.example", "198.51.100.4", 5, 30, 30, 5),
)
KINDS: Final = (
    Kind(
        sender="Corner Shop <orders@example.com>",
        subject="Your order {number} is on its way",
        text="Hello {name},\n\nyour order {number} left our shop today and should be with you on {day}.\n",
        html="<h1>On its way</h1><p>Hello {name},</p><p>your order <b>{number}</b> left our shop today and should be "
        "with you on {day}.</p>",
        tags=("order", "shipping"),
        source=mail.Source.API,
        weight=5,
    ),
    Kind(
        sender="Corner Shop <billing@example.com>",
        subject="Invoice {number}",
        text="Hello {name},\n\nyour invoice {number} is attached. Thank you.\n",
        html="<p>Hello {name},</p><p>your invoice <b>{number}</b> is attached. Thank you.</p>",
        tags=("invoice",),
        source=mail.Source.SMTP,
        weight=3,
    ),
    Kind(
        sender="Corner Shop <hello@example.com>",
        subject="Choose a new password",
        text="Hello {name},\n\nsomebody, we hope you, wants a new password. The link works for an hour.\n",
        html="<p>Hello {name},</p><p>somebody, we hope you, wants a new password. The link works for an hour.</p>",
        tags=("account",),
        source=mail.Source.API,
        weight=2,
    ),
    Kind(
        sender="Corner Shop <hello@example.com>",
        subject="Welcome, {name}",
        text="Hello {name},\n\nThanks for joining us.\n",
        html="<p>Hello <b>{name}</b>,</p><p>Thanks for joining us.</p>",
        tags=("account", "welcome"),
        source=mail.Source.API,
        weight=2,
    ),
)
ACCEPTED: Final = Reply(disposition.Verdict.DELIVERED, None, "delivered", 250, "2.0.0", "2.0.0 OK, queued", "content")
DEFERRED: Final = (
    Reply(
        disposition.Verdict.RETRY,
        disposition.Fault.RATE,
        "rate_limited",
        421,
        "4.7.0",
        "4.7.0 [TSS04] Messages temporarily deferred due to unexpected volume or user complaints",
        "mail",
    ),
    Reply(
        disposition.Verdict.RETRY,
        disposition.Fault.RATE,
        "greylisted",
        451,
        "4.7.1",
        "4.7.1 Greylisting in action, please come back in 5 minutes",
        "recipient",
    ),
)
BOUNCED: Final = (
    Reply(
        disposition.Verdict.BOUNCED,
        disposition.Fault.ADDRESS,
        "unknown_address",
        550,
        "5.1.1",
        "5.1.1 The email account that you tried to reach does not exist",
        "recipient",
    ),
    Reply(
        disposition.Verdict.BOUNCED,
        disposition.Fault.POLICY,
        "mailbox_full",
        552,
        "5.2.2",
        "5.2.2 The recipient's inbox is out of storage space",
        "recipient",
    ),
    Reply(
        disposition.Verdict.BOUNCED,
        disposition.Fault.CONTENT,
        "spam_suspected",
        554,
        "5.7.9",
        "5.7.9 Message not accepted for policy reasons",
        "content",
    ),
)
FAILED: Final = Reply(
    disposition.Verdict.FAILED,
    disposition.Fault.NETWORK,
    "connection_timed_out",
    None,
    "",
    "the connection to the host timed out",
    "connect",
)


class Clock:
    """A clock that stands where it is put."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes mail of one account into a store. `chance` decides everything that is not the same for all."""

    ctx: context.Context
    clock: Clock
    chance: random.Random
    who: caller.Caller

    async def message(self, at: int, *, waits: bool) -> str:
        """One message from its acceptance to its end, or to the wait for its next attempt; returns its id."""
        self.clock.now = at
        kind = self.chance.choices(KINDS, [one.weight for one in KINDS])[0]
        destination = self.chance.choices(DESTINATIONS, [one.weight for one in DESTINATIONS])[0]
        message_id = await self._accept(kind, destination)
        for reply in self._replies(destination, waits=waits):
            await self._record(message_id, destination, reply)
        return message_id

    async def _accept(self, kind: Kind, destination: Destination) -> str:
        first, last = self.chance.choice(FIRST_NAMES), self.chance.choice(LAST_NAMES)
        day = times.to_wire(self.clock.now + 2 * times.DAY)[:10]
        words = {"name": first.title(), "number": str(self.chance.randrange(10_000, 99_999)), "day": day}
        request = send_request.SendRequest(
            sender=kind.sender,
            to=(f"{first.title()} {last.title()} <{first}.{last}@{destination.domain}>",),
            subject=kind.subject.format(**words),
            text=kind.text.format(**words),
            html=kind.html.format(**words),
            tags=kind.tags,
        )
        request_id = self.ctx.new_id(identifiers.REQUEST, now=self.clock.now)
        accepted = await submit.submit(self.ctx, self.who, request, request_id=request_id, source=kind.source, key=None)
        return accepted.message_id

    def _replies(self, destination: Destination, *, waits: bool) -> Iterator[Reply]:
        """What the destination says, attempt by attempt."""
        if waits:
            yield self.chance.choice(DEFERRED)
            return
        rolled = self.chance.randrange(1000)
        if rolled < destination.failed:
            yield from [self.chance.choice(DEFERRED)] * 3
            yield FAILED
        elif rolled < destination.failed + destination.bounced:
            yield self.chance.choices(BOUNCED, [3, 1, 1])[0]
        else:
            if self.chance.randrange(1000) < destination.deferred:
                yield self.chance.choice(DEFERRED)
            yield ACCEPTED

    async def _record(self, message_id: str, destination: Destination, reply: Reply) -> None:
        """Claim the recipient as a worker does, and say what its attempt came to."""
        duration = self.chance.randrange(180_000, 2_400_000)
        self.clock.now += times.SECOND
        async with self.ctx.store.transaction() as tx:
            await queue.promote(tx, now=self.clock.now, limit=100)
            queue_key = queue.queue_key_of(destination.domain, self.who.account_id)
            lease_until = self.clock.now + MINUTE
            await queue.claim(tx, [queue.ClaimRequest(queue_key, 100)], lease_until=lease_until, worker=WORKER)
            (recipient,) = await recipients.of_message(tx, self.who.account_id, message_id)
        key = (self.who.account_id, message_id, recipient.id)
        attempt = attempts.Attempt(
            *key,
            started_at=self.clock.now,
            duration=duration,
            provider_queue=destination.provider_queue,
            host="" if reply.stage == "route" else destination.host,
            address=destination.address,
            tls="" if reply.stage == "connect" else TLS,
            stage=reply.stage,
            verdict=reply.verdict,
            fault=reply.fault,
            reason=reply.reason,
            smtp_code=reply.code,
            enhanced_code=reply.enhanced,
            response=reply.text,
            in_doubt=0,
        )
        self.clock.now += duration
        again = reply.verdict is disposition.Verdict.RETRY
        next_attempt_at = self.clock.now + 15 * MINUTE
        outcome = outcomes.Outcome(
            key=key,
            email_key=recipient.email.lower(),
            recipient_count=1,
            verdict=reply.verdict,
            smtp_code=reply.code,
            response=reply.text,
            at=self.clock.now,
            ledger_id=self.ctx.new_id(identifiers.LEDGER, now=self.clock.now),
            worker=WORKER,
            next_attempt_at=next_attempt_at if again else None,
            suppress=reply.fault is disposition.Fault.ADDRESS,
            attempt=attempt,
        )
        await self.ctx.outcome_commits.submit([outcome])
        if again:
            self.clock.now = next_attempt_at + times.SECOND


def moments(chance: random.Random, *, count: int, now: int) -> list[int]:
    """Times of the last thirty days, oldest first: more of them by day, fewer at weekends, a little more each week."""
    today = now // times.DAY
    days = range(today - DAYS + 1, today + 1)
    # 1970 began on a Thursday.
    weights = [(0.35 if (day + 3) % 7 >= 5 else 1.0) * (1 + place / DAYS) for place, day in enumerate(days)]
    found: list[int] = []
    while len(found) < count:
        day, hour = chance.choices(days, weights)[0], chance.choices(range(24), HOURS)[0]
        at = day * times.DAY + hour * times.HOUR + chance.randrange(times.HOUR)
        if at < now - 2 * times.HOUR:
            found.append(at)
    return sorted(found)


async def write(ctx: context.Context, who: caller.Caller, *, count: int, waiting: int, now: int) -> list[str]:
    """So many messages that ended, and so many that wait; returns their ids, oldest first."""
    chance = random.Random(20_261_115)
    clock = Clock(now)
    writer = Writer(dataclasses.replace(ctx, clock=clock, entropy=chance.randbytes), clock, chance, who)
    ended = [await writer.message(at, waits=False) for at in moments(chance, count=count, now=now)]
    # Their next attempts are minutes away.
    latest = [await writer.message(now - MINUTE * (waiting - place), waits=True) for place in range(waiting)]
    return [*ended, *latest]
