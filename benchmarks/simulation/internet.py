"""The destinations of a day: mail hosts that accept, refuse, limit, greylist, stall or do not answer.

They are reached with connections that the real `Attempter` uses like those of `network/smtp/smtp_connection.py`.
Replies are values with the words of real providers, and the real tables classify them.
"""

import asyncio
import collections
import random
import typing

from benchmarks.simulation import invariants, scenario, virtual_time
from postroad.delivery import routing
from postroad.model.delivery import providers, tls_policy
from postroad.model.units import destinations
from postroad.network.smtp import smtp_connection
from postroad.protocol.smtp import values

DNS_SECONDS = 0.02
# How much the times of transactions vary: the mean is a fifth above the median.
SIGMA = 0.6
# The last recipients of a sending address, of which a provider knows how many did not exist.
REMEMBERED = 1000
NEVER = 1e12

DELIVERED = (values.RecipientResult(values.Stage.CONTENT, values.Reply(250, "OK", "2.0.0")),)
UNKNOWN = (
    values.RecipientResult(
        values.Stage.RECIPIENT, values.Reply(550, "The email account that you tried to reach does not exist.", "5.1.1")
    ),
)
GREYLISTED = (
    values.RecipientResult(values.Stage.RECIPIENT, values.Reply(451, "Greylisted, please come back in 300 s", "4.7.1")),
)
LOST = (values.RecipientResult(values.Stage.MAIL, cause=values.Cause.CONNECTION_LOST, detail="connection lost"),)
TIMED_OUT = values.RecipientResult(
    values.Stage.CONNECT, cause=values.Cause.CONNECTION_TIMED_OUT, detail="connection timed out"
)


class Recipient(typing.NamedTuple):
    """What the local part of an address says: the number of the message, whether the mailbox exists, the account."""

    number: str
    exists: bool
    account_id: str

    def address(self, domain: str) -> str:
        """The address."""
        return f"{self.number}.{self.exists:d}.{self.account_id}@{domain}"


def recipient_of(address: str) -> Recipient:
    """What an address says."""
    number, exists, account_id = address.partition("@")[0].split(".")
    return Recipient(number, exists == "1", account_id)


class Reputation:
    """What a kind of destination thinks of one sending address."""

    def __init__(self, kind: scenario.Kind) -> None:
        self._kind = kind
        self._level, self._seen_at = 0.0, 0.0
        self._refused_until = self._blocked_until = 0.0
        self._last: collections.deque[bool] = collections.deque(maxlen=REMEMBERED)

    def refusal(self, now: float) -> tuple[values.RecipientResult, ...] | None:
        """The reply to a message that is refused whatever it is."""
        kind = self._kind
        if now < self._blocked_until:
            return _reply(kind.block_code, kind.block_enhanced, kind.block_reply)
        if not kind.rate:
            return None
        self._level = max(0.0, self._level - (now - self._seen_at) * kind.rate) + 1
        self._seen_at = now
        if self._level > kind.burst:
            self._refused_until = now + kind.limit_seconds
            self._level = 0.0
        return _reply(kind.limit_code, kind.limit_enhanced, kind.limit_reply) if now < self._refused_until else None

    def count(self, now: float, *, exists: bool) -> None:
        """A recipient was asked for."""
        if self._kind.block_share < 1:
            self._last.append(not exists)
            if len(self._last) == REMEMBERED and sum(self._last) >= self._kind.block_share * REMEMBERED:
                self._blocked_until = now + self._kind.block_seconds
                self._last.clear()


def _reply(code: int, enhanced: str, text: str) -> tuple[values.RecipientResult, ...]:
    return (values.RecipientResult(values.Stage.MAIL, values.Reply(code, text, enhanced)),)


class Internet:
    """All destinations, and what they remember."""

    def __init__(self, day: scenario.Scenario, checks: invariants.Invariants) -> None:
        self.checks = checks
        self.tick_seconds = day.tick_seconds
        self.kinds = {kind.name: kind for kind in day.kinds}
        self._outages = day.outages
        self._hostile = {sender.name for sender in day.senders if sender.is_hostile}
        failing = {outage.kind for outage in day.outages}
        self._healthy = {kind.name for kind in day.kinds if _is_healthy(kind)} - failing
        self._kind_of_queue: dict[str, scenario.Kind] = {}
        self._routes: dict[str, routing.Route] = {}
        self._kinds: dict[str, scenario.Kind] = {}
        self._provider_queues: dict[str, str] = {}
        self._reputations: dict[tuple[int, str], Reputation] = {}
        self._first_tries: dict[tuple[str, str], float] = {}

    def route(self, domain: str) -> routing.Route:
        """What DNS says, for ever."""
        known = self._routes.get(domain)
        if known is None:
            kind = self.kind_of(domain)
            name = kind.mail_host.format(domain=domain)
            provider, provider_queue = providers.of_hosts([name]), self.provider_queue_of(name)
            host = routing.Host(name, name, 25, tls_policy.OPPORTUNISTIC)
            known = self._routes[domain] = routing.Route(provider_queue, provider, (host,), NEVER, NEVER)
            self._kind_of_queue[provider_queue] = kind
        return known

    def kind_of(self, domain: str) -> scenario.Kind:
        """The kind of a domain."""
        known = self._kinds.get(domain)
        if known is None:
            known = self._kinds[domain] = next(
                kind for kind in self.kinds.values() if domain == kind.domain or _is_numbered(domain, kind.domain)
            )
        return known

    def provider_queue_of(self, mail_host: str) -> str:
        """The provider queue of a mail host."""
        known = self._provider_queues.get(mail_host)
        if known is None:
            provider = providers.of_host(mail_host)
            known = provider if provider != providers.OTHERS else destinations.provider_queue_name([mail_host])
            self._provider_queues[mail_host] = known
        return known

    def kind_of_host(self, mail_host: str) -> scenario.Kind:
        """The kind of a mail host."""
        return self._kind_of_queue[self.provider_queue_of(mail_host)]

    def connections(self) -> collections.Counter[str]:
        """How many are open, by kind."""
        found: collections.Counter[str] = collections.Counter()
        for provider_queue, count in self.checks.connections():
            found[self._kind_of_queue[provider_queue].name] += count
        return found

    def is_silent(self, kind: scenario.Kind, now: float) -> bool:
        """Whether nothing answers there now."""
        return kind.is_silent or any(
            outage.kind == kind.name and outage.begins <= now < outage.begins + outage.seconds
            for outage in self._outages
        )

    def must_not_wait(self, kind: scenario.Kind, account_id: str) -> bool:
        """Whether nothing but other mail can delay the first attempt of the account's mail to this kind."""
        return kind.name in self._healthy and account_id not in self._hostile

    def reputation(self, host: int, kind: scenario.Kind) -> Reputation:
        """What a kind thinks of a host."""
        known = self._reputations.get((host, kind.name))
        if known is None:
            known = self._reputations[host, kind.name] = Reputation(kind)
        return known

    def is_greylisted(self, kind: scenario.Kind, account_id: str, domain: str, now: float) -> bool:
        """Whether the sender has not been here for long enough."""
        if not kind.greylist_seconds:
            return False
        return now < self._first_tries.setdefault((account_id, domain), now) + kind.greylist_seconds


def _is_healthy(kind: scenario.Kind) -> bool:
    return not kind.is_silent and not kind.slowest_seconds and not kind.rate and kind.block_share >= 1


def _is_numbered(domain: str, pattern: str) -> bool:
    before, mark, after = pattern.partition("{number}")
    return bool(mark) and domain.startswith(before) and domain.endswith(after)


class Connection:
    """A session with a mail host, as `Attempter` knows it."""

    tls = "TLSv1.3"
    conversation = ""
    is_in_doubt = False

    def __init__(self, internet: Internet, sender: "Sender", host: routing.Host, kind: scenario.Kind) -> None:
        self._internet, self._sender, self._kind = internet, sender, kind
        self.destination = smtp_connection.Destination(host.name, host.address, host.port, host.tls)
        self.deliveries = 0
        self.is_usable = self._is_open = True

    async def deliver(self, transaction: values.MailTransaction) -> tuple[values.RecipientResult, ...]:
        """One mail transaction."""
        (address,) = transaction.recipients
        recipient, kind, internet = recipient_of(address), self._kind, self._internet
        loop = asyncio.get_running_loop()
        now = loop.time()
        internet.checks.attempt_begins(now, recipient.number, worker=self._sender.worker)
        self._sender.begins(now, recipient.number, kind, self.destination.host)
        self.deliveries += 1
        if internet.is_silent(kind, now):
            self.is_usable = False
            return LOST
        reputation = internet.reputation(self._sender.host, kind)
        await virtual_time.sleep(self._seconds(), tick=internet.tick_seconds)
        now = loop.time()
        if (refused := reputation.refusal(now)) is not None:
            return refused
        reputation.count(now, exists=recipient.exists)
        if internet.is_greylisted(kind, recipient.account_id, address.partition("@")[2], now):
            return GREYLISTED
        if not recipient.exists:
            return UNKNOWN
        internet.checks.delivered(now, recipient.number)
        return DELIVERED

    def _seconds(self) -> float:
        if self._kind.slowest_seconds:
            return random.uniform(self._kind.seconds, self._kind.slowest_seconds)
        return min(self._kind.seconds * random.lognormvariate(0.0, SIGMA), 30.0)

    async def close(self) -> None:
        """End with QUIT."""
        self.abort()

    def abort(self) -> None:
        """End."""
        if self._is_open:
            self._is_open = self.is_usable = False
            self._sender.disconnected(self.destination.host)


class Sender(typing.Protocol):
    """The host that sends."""

    host: int
    worker: str

    def begins(self, now: float, number: str, kind: scenario.Kind, mail_host: str) -> None:
        """A transaction begins."""

    def disconnected(self, mail_host: str) -> None:
        """A connection is closed."""
