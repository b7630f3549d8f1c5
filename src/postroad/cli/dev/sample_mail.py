"""The mail of the sample week: accepted and ended by the services themselves, at times long gone.

Chance is fixed, so every run has the same mail. Most of it is delivered at once; some is deferred first, some bounces,
some fails, and what came last still waits for its next attempt. Nothing is sent while this is written: the service that
would is not running yet. A day's mail is written together, because a transaction costs more than a message.
"""

import asyncio
import collections
import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from postroad import context
from postroad.cli.dev import sample_data
from postroad.mail import return_path
from postroad.mail.accept import submit
from postroad.mail.results import complaints, guard_counts, outcomes
from postroad.model.bounces import bounce_guard, disposition
from postroad.model.delivery import providers, throttle
from postroad.model.mail import send_request, simulated_outcomes
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.protocol.reports import arf
from postroad.protocol.smtp import values
from postroad.storage.mail import attempts, messages, queue
from postroad.storage.people import accounts

DAYS: Final = 7
WORKER: Final = "mail-1:4211:5e1f0a2b"
MINUTE: Final = 60 * times.SECOND
RETRY_AFTER: Final = 15 * MINUTE
TLS: Final = "TLSv1.3"
SEED: Final = 20_261_115
# Attempts of a recipient whose host never answers.
FAILED_ATTEMPTS: Final = 4
# Submitted at once: the commits of all are one.
AT_ONCE: Final = 100
Behaviour = simulated_outcomes.ProviderBehaviour


@dataclass(slots=True)
class Draft:
    """A message of the week, and what its attempts come to; without behaviours, its address is suppressed."""

    at: int
    kind: sample_data.Kind
    destination: sample_data.Destination
    request: send_request.SendRequest
    behaviours: list[Behaviour]
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes mail of one account into a store. `rng` decides everything that is not the same for all.

    `suppressed` has the addresses on the list so far, with the reasons.
    """

    ctx: context.Context
    rng: random.Random
    who: callers.Caller
    suppressed: dict[str, str] = field(default_factory=dict)

    def draft(self, at: int, *, waits: bool = False) -> Draft:
        kind = self.rng.choices(sample_data.WEEK.kinds, [option.weight for option in sample_data.WEEK.kinds])[0]
        destinations = sample_data.WEEK.destinations
        destination = self.rng.choices(destinations, [option.weight for option in destinations])[0]
        behaviours = [self._one_of(sample_data.DEFERRED)] if waits else list(self._behaviours(destination))
        is_unknown = behaviours == [Behaviour.UNKNOWN_USER]
        mailbox = self.rng.choice(sample_data.WEEK.mistyped) if is_unknown else self._mailbox(destination)
        email = f"{mailbox}@{destination.domain}"
        if email in self.suppressed:
            behaviours = []
        elif is_unknown:
            self.suppressed[email] = _play(destination, Behaviour.UNKNOWN_USER).response_text
        first, last = mailbox.split(".")
        number = self.rng.randrange(10_000, 99_999)
        words = {"name": first.title(), "number": number, "day": times.to_wire(at + 2 * times.DAY)[:10]}
        request = send_request.SendRequest(
            sender=kind.sender,
            to=(f"{first.title()} {last.title()} <{email}>",),
            subject=kind.subject.format(**words),
            text=kind.text.format(**words),
            html=kind.html.format(**words),
            tags=kind.tags,
            metadata={"order": str(number)} if "order" in kind.tags else None,
        )
        return Draft(at, kind, destination, request, behaviours, waits)

    def _mailbox(self, destination: sample_data.Destination) -> str:
        while True:
            first, last = self.rng.choice(sample_data.WEEK.first_names), self.rng.choice(sample_data.WEEK.last_names)
            if f"{first}.{last}@{destination.domain}" not in self.suppressed:
                return f"{first}.{last}"

    def _behaviours(self, destination: sample_data.Destination) -> Iterator[Behaviour]:
        """What the destination does, attempt by attempt."""
        rolled = self.rng.randrange(1000)
        if rolled < destination.failed:
            yield from [Behaviour.UNAVAILABLE] * FAILED_ATTEMPTS
        elif rolled < destination.failed + destination.bounced:
            yield self._one_of(sample_data.BOUNCED)
        else:
            if self.rng.randrange(1000) < destination.deferred:
                yield self._one_of(sample_data.DEFERRED)
            yield Behaviour.ACCEPTED

    def _one_of(self, weights: dict[Behaviour, int]) -> Behaviour:
        return self.rng.choices(list(weights), list(weights.values()))[0]

    async def write(self, drafts: list[Draft]) -> list[str]:
        """The messages of a day, until they have ended or wait for their next attempt; returns their ids."""
        found: dict[str, Draft] = {}
        for place in range(0, len(drafts), AT_ONCE):
            some = drafts[place : place + AT_ONCE]
            found.update(zip(await asyncio.gather(*map(self._accept, some)), some, strict=True))
        # Attempt by attempt, because an attempt of a recipient is recorded before its next one.
        while claimed := await self._claim(found):
            await self.ctx.outcome_commits.submit(
                [self._outcome(recipient, found[recipient.message_id]) for recipient in claimed]
            )
            if all(found[recipient.message_id].waits for recipient in claimed):
                break
        return list(found)

    async def _accept(self, draft: Draft) -> str:
        ctx = dataclasses.replace(self.ctx, clock=lambda: draft.at)
        request_id = ctx.new_id(identifiers.REQUEST, now=draft.at)
        accepted = await submit.submit(
            ctx, self.who, draft.request, request_id=request_id, source=draft.kind.source, key=None
        )
        return accepted.message_id

    async def _claim(self, found: dict[str, Draft]) -> list[queue.Claimed]:
        """Lease what is due of these messages, as a worker does; other mail to the same domains stays queued."""
        now = self.ctx.clock()
        async with self.ctx.store.transaction() as tx:
            await queue.promote(tx, now=now, limit=10_000)
            keys = [
                queue.queue_key_of(destination.domain, self.who.account_id)
                for destination in sample_data.WEEK.destinations
            ]
            wanted = [queue.ClaimRequest(key, 10_000) for key in keys]
            claimed = await queue.claim(tx, wanted, lease_until=now + times.DAY, worker=WORKER)
            others = [recipient.key for recipient in claimed if recipient.message_id not in found]
            await queue.release(tx, others, now=now, worker=WORKER)
        return [recipient for recipient in claimed if recipient.message_id in found]

    def _outcome(self, claimed: queue.Claimed, draft: Draft) -> outcomes.Outcome:
        """What the attempt came to, as delivery would judge it."""
        if not draft.behaviours:
            return self._suppressed(claimed, draft)
        number, destination = claimed.attempt_count, draft.destination
        result = _play(destination, draft.behaviours[number])
        judged = disposition.classify(result)
        again = judged.verdict is disposition.Verdict.RETRY
        is_last = number + 1 == len(draft.behaviours) and not draft.waits
        verdict = disposition.Verdict.FAILED if again and is_last else judged.verdict
        duration = self.rng.randrange(180_000, 2_400_000)
        started_at = draft.at + times.SECOND + number * (RETRY_AFTER + times.SECOND)
        ended_at = started_at + duration
        return outcomes.Outcome(
            key=claimed.key,
            email_key=claimed.email_key,
            recipient_count=1,
            verdict=verdict,
            status=outcomes.STATUS[verdict],
            smtp_code=result.reply.code if result.reply else None,
            response=result.response_text,
            at=ended_at,
            ledger_id=self.ctx.new_id(identifiers.LEDGER, now=ended_at),
            worker=WORKER,
            next_attempt_at=ended_at + RETRY_AFTER if verdict is disposition.Verdict.RETRY else None,
            suppress=verdict is disposition.Verdict.BOUNCED and judged.fault is disposition.Fault.ADDRESS,
            attempt=attempts.Attempt(
                *claimed.key,
                started_at=started_at,
                duration=duration,
                provider_queue=destination.provider_queue,
                host=destination.host,
                address=destination.address,
                tls="" if result.reply is None else TLS,
                stage=result.stage,
                verdict=verdict,
                fault=judged.fault,
                reason=judged.reason,
                smtp_code=result.reply.code if result.reply else None,
                enhanced_code=result.reply.enhanced if result.reply else "",
                response=result.response_text,
                in_doubt=0,
            ),
            conversation="" if verdict is disposition.Verdict.DELIVERED else self._said(claimed, draft, result),
        )

    def _suppressed(self, claimed: queue.Claimed, draft: Draft) -> outcomes.Outcome:
        """Bounced without an attempt, as delivery does it."""
        at = draft.at + times.SECOND
        return outcomes.Outcome(
            key=claimed.key,
            email_key=claimed.email_key,
            recipient_count=1,
            verdict=disposition.Verdict.BOUNCED,
            status=outcomes.STATUS[disposition.Verdict.BOUNCED],
            smtp_code=None,
            response=f"not attempted: the address is on the suppression list ({self.suppressed[claimed.email_key]})",
            at=at,
            ledger_id=self.ctx.new_id(identifiers.LEDGER, now=at),
            worker=WORKER,
        )

    def _said(self, claimed: queue.Claimed, draft: Draft, result: values.RecipientResult) -> str:
        """The SMTP conversation up to the reply; nothing is said to a host that does not answer."""
        if result.reply is None:
            return ""
        host, greeting = draft.destination.host.encode(), f"EHLO {self.ctx.settings.delivery.hostname}\r\n".encode()
        sender = return_path.address(
            self.ctx.keys.return_path,
            message_id=claimed.message_id,
            recipient_id=claimed.recipient_id,
            domain="shop.example",
        )
        told = values.Conversation()
        told.said += [(220, (host + b" ESMTP",)), greeting, (250, (host, b"SIZE 52428800", b"STARTTLS"))]
        told.said += [b"STARTTLS\r\n", (220, (b"2.0.0 Ready to start TLS",)), values.TLS_ESTABLISHED]
        told.said += [greeting, (250, (host, b"SIZE 52428800"))]
        told.said += [f"MAIL FROM:<{sender}> SIZE={claimed.size}\r\n".encode(), (250, (b"2.1.0 Ok",))]
        told.said.append(f"RCPT TO:<{claimed.email}>\r\n".encode())
        if result.stage is values.Stage.CONTENT:
            told.said += [(250, (b"2.1.5 Ok",)), b"DATA\r\n", (354, (b"Go ahead",)), values.CONTENT]
        told.said.append((result.reply.code, (result.response_text.encode(),)))
        return told.text()

    async def complain(self, message_id: str, *, at: int) -> None:
        """The recipient of a delivered message marks it as spam, and the provider's feedback loop reports it."""
        ctx = dataclasses.replace(self.ctx, clock=lambda: at)
        async with ctx.store.reading() as tx:
            (recipient,) = await messages.recipients(tx, self.who.account_id, message_id)
        sender = return_path.address(
            ctx.keys.return_path, message_id=message_id, recipient_id=recipient.id, domain="shop.example"
        )
        self.suppressed[recipient.email] = "complaint"
        await complaints.receive(ctx, arf.FeedbackReport("abuse", (sender,)), b"", sent_to="")
        counted = {self.who.account_id: bounce_guard.Counts(complaints=1)}
        async with ctx.store.transaction() as tx:
            locked = await accounts.lock(tx, [self.who.account_id])
            rules = guard_counts.rules_of(ctx.settings.bounce_guard)
            await guard_counts.count(tx, rules, counted, locked=locked, now=at)


def _play(destination: sample_data.Destination, behaviour: Behaviour) -> values.RecipientResult:
    played = simulated_outcomes.provider_attempt(
        simulated_outcomes.provider_of(destination.provider, behaviour), attempts=0
    )
    assert played is not None  # noqa: S101 - every provider plays every behaviour
    return played.result


def moments(rng: random.Random, *, count: int, now: int) -> list[int]:
    """Times of the last seven days, oldest first: more of them by day, fewer at weekends, a little more each day."""
    today = times.day_of(now)
    days = range(today - DAYS + 1, today + 1)
    # 1970 began on a Thursday.
    weights = [
        (sample_data.WEEKEND_SHARE if (day + 3) % 7 >= 5 else 1.0) * (1 + place / DAYS)  # noqa: PLR2004
        for place, day in enumerate(days)
    ]
    found: list[int] = []
    while len(found) < count:
        day, hour = rng.choices(days, weights)[0], rng.choices(range(24), sample_data.WEEK.hours)[0]
        at = day * times.DAY + hour * times.HOUR + rng.randrange(times.HOUR)
        if at < now - 2 * times.HOUR:
            found.append(at)
    return sorted(found)


async def write(ctx: context.Context, who: callers.Caller, *, count: int, waiting: int, now: int) -> list[str]:
    """So many messages that ended, and so many that wait; returns their ids, oldest first."""
    rng = random.Random(SEED)  # noqa: S311 - the same mail every time
    writer = Writer(ctx, rng, who)
    # What the account has sent just now would be ahead of mail of last week, and use up its rate.
    async with ctx.store.transaction() as tx:
        await accounts.record_entries(tx, (), buckets={who.account_id: throttle.SharedBucket()})
    ctx.rate_limiter.learn(who.account_id, 0)
    by_day: dict[int, list[Draft]] = collections.defaultdict(list)
    for at in moments(rng, count=count, now=now):
        by_day[times.day_of(at)].append(writer.draft(at))
    ended: list[str] = []
    delivered = ""
    for drafts in by_day.values():
        written = await writer.write(drafts)
        ended += written
        delivered = next(
            (message_id for message_id, draft in zip(written, drafts, strict=True) if _was_read(draft)), delivered
        )
    await writer.complain(delivered, at=now - times.HOUR)
    # Their next attempts are minutes away.
    latest = [writer.draft(now - MINUTE * (waiting - place), waits=True) for place in range(waiting)]
    return [*ended, *await writer.write(latest)]


def _was_read(draft: Draft) -> bool:
    """Whether its recipient may complain: a newsletter to Yahoo, which has a feedback loop."""
    is_yahoo = draft.destination.provider_queue == providers.MAILBOX_DOMAINS["yahoo.com"]
    return is_yahoo and draft.behaviours == [Behaviour.ACCEPTED]
