"""A mail arrives at a route: it is stored with its event, forwarded or dropped, before its sender is told so.

Everything about a stored mail is one transaction. The same mail to the same recipient, octet by octet, is stored once:
a client that did not hear the 250 sends it again. A fingerprint of less, such as its Message-ID, would let anybody who
knows that keep the mail out.

What strangers may have done here is bounded: mail per account and day, mail per account, sending network and day, mail
in work, and each lookup and pass of the work itself. It has one party among the fair shares of DNS and threads.
"""

import contextlib
import functools
import hashlib
import re
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Final

import msgspec

from postroad import context
from postroad.concurrency import fairness
from postroad.mail import message_ids
from postroad.mail.authentication import authenticate, header
from postroad.model.events import events
from postroad.model.people import login_rules
from postroad.model.units import identifiers, times
from postroad.network import spamd
from postroad.protocol.mime import builder
from postroad.services.inbound import event_data, forward
from postroad.services.messages import content_checks, received_mail
from postroad.storage.engine import store
from postroad.storage.mail import messages, received
from postroad.storage.people import accounts

PARTY: Final = "inbound mail"
# A busy help desk gets some thousands a day; a flood ends here, and costs at most this much space.
MAX_MESSAGES_PER_DAY: Final = 10_000
MAX_BYTES_PER_DAY: Final = 1024 * 1024 * 1024
# Of one network to one account: large mailbox providers send from many, and a few large mails use up no day.
MAX_PER_NETWORK: Final = 1_000
MAX_BYTES_PER_NETWORK: Final = 256 * 1024 * 1024
# Most of the time they wait for DNS. Their contents are in memory, and have room of their own in the listener.
MAX_IN_WORK: Final = 32
# Then the client is asked to come again; it waits for minutes.
WAIT_SECONDS: Final = 20.0
# Postfix has 50, and a way through two organizations some dozen.
MAX_HOPS: Final = 30
# A long way leaves some dozens of fields; what has more is no mail of a person or a program.
MAX_HEADER_BYTES: Final = 128 * 1024
MAX_HEADER_LINES: Final = 2_000
# Hashing more would block the event loop for some milliseconds. What a mail says is always read in a thread: few octets
# can take long.
LARGE_BYTES: Final = 1024 * 1024
SUBJECT_CHARACTERS: Final = 1_000
# Of those that a mail names, the newest: each is a lookup by key.
MAX_ANSWERED: Final = 5

_FIELD: Final = re.compile(rb"^([!-9;-~]++)[ \t]*+:[^\n]*+\n(?:[ \t][^\n]*+\n)*+", re.MULTILINE)
# A mail that begins with one would go on with the field that is put before it.
_FOLDED: Final = re.compile(rb"\A(?:[ \t][^\n]*+\n)++")
_HOST: Final = re.compile(r"[A-Za-z0-9.:_\[\]-]{1,255}", re.ASCII)
_RECEIVED: Final = b"received"
_RESULTS: Final = b"authentication-results"


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A mail as it came in, and the route that takes it. `helo` and `protocol` are for its trace field."""

    route: received.Route
    sender: str
    recipient: str
    content: bytes
    client_address: str
    helo: str
    protocol: str


class Result(StrEnum):
    STORED = "stored"
    DUPLICATE = "duplicate"
    FORWARDED = "forwarded"
    DROPPED = "dropped"
    LOOP = "loop"
    TOO_LARGE = "too_large"
    SUSPENDED = "suspended"
    OVER_QUOTA = "over_quota"
    OVER_NETWORK_QUOTA = "over_network_quota"
    NOT_FORWARDED = "not_forwarded"
    BUSY = "busy"


class _NotTaken(Exception):
    """Rolls a transaction back."""

    def __init__(self, result: Result) -> None:
        super().__init__(result)
        self.result = result


class Receiver:
    """Takes mail for routes; `host` is the name of the listener."""

    def __init__(self, ctx: context.Context, *, host: str) -> None:
        self._ctx = ctx
        self._host = host
        # By sending network: one of them does not keep the others out.
        self._in_work = fairness.FairSemaphore(MAX_IN_WORK)
        # By account, one at a time: the transactions of sends wait for at most one of these.
        self._commits = fairness.FairSemaphore(1)

    async def receive(self, arrival: Arrival) -> Result:
        """What became of a mail; it is on disk if it was taken. Raises a PostroadError if the store fails."""
        head = _head(arrival.content)
        if len(head) > MAX_HEADER_BYTES or head.count(b"\n") > MAX_HEADER_LINES:
            return Result.TOO_LARGE
        if [name.lower() for name in _FIELD.findall(head)].count(_RECEIVED) > MAX_HOPS:
            return Result.LOOP
        try:
            async with self._in_work.hold(login_rules.network_of(arrival.client_address), timeout=WAIT_SECONDS):
                return await self._take(arrival)
        except TimeoutError:
            return Result.BUSY
        except _NotTaken as refusal:
            return refusal.result

    async def _take(self, arrival: Arrival) -> Result:
        ctx, route = self._ctx, arrival.route
        if route.action == received.Action.DROP:
            async with self._transaction(arrival) as tx:
                await self._admit(tx, arrival)
            return Result.DROPPED
        is_large = len(arrival.content) > LARGE_BYTES
        hash_it = functools.partial(_fingerprint, arrival)
        fingerprint = await ctx.threads.run(PARTY, hash_it) if is_large else hash_it()
        if route.action == received.Action.FORWARD:
            return await self._forward(arrival, fingerprint)
        async with ctx.store.reading() as tx:
            if await received.is_known(tx, route.account_id, fingerprint):
                return Result.DUPLICATE
            # What is over a quota costs no more than this.
            await self._check_quotas(tx, arrival)
        return await self._store(arrival, fingerprint)

    async def _forward(self, arrival: Arrival, fingerprint: bytes) -> Result:
        head = _head(arrival.content)
        if forward.is_loop(head, arrival.recipient):
            return Result.LOOP
        if len(arrival.content) > forward.MAX_BYTES:
            return Result.TOO_LARGE
        async with self._transaction(arrival) as tx:
            await self._admit(tx, arrival)
        content = _field("Received", self._trace(arrival, identifier=arrival.route.id)) + arrival.content
        mail = await self._ctx.threads.run(PARTY, functools.partial(_read, head + b"\r\n", arrival))
        is_forwarded = await forward.forward(
            self._ctx, arrival.route, content, mail=mail, recipient=arrival.recipient, key=fingerprint.hex()
        )
        return Result.FORWARDED if is_forwarded else Result.NOT_FORWARDED

    async def _store(self, arrival: Arrival, fingerprint: bytes) -> Result:
        ctx, account_id = self._ctx, arrival.route.account_id
        results = await authenticate.authenticate(
            ctx,
            arrival.content,
            client_address=arrival.client_address,
            helo=arrival.helo,
            sender=arrival.sender,
            party=PARTY,
        )
        spam = _spam(await content_checks.ask_spamd(ctx, account_id, arrival.content))
        now = ctx.clock()
        received_id = ctx.new_id(identifiers.RECEIVED, now=now)
        added = (
            _field("Return-Path", f"<{arrival.sender}>")
            + _field("Received", self._trace(arrival, identifier=received_id))
            + _field("Authentication-Results", header.value(results, host=self._host))
        )
        content = added + _without_claims(arrival.content, self._host)
        mail = await ctx.threads.run(PARTY, functools.partial(_read, content, arrival))
        row = received.Received(
            account_id=account_id,
            id=received_id,
            route_id=arrival.route.id,
            recipient=arrival.recipient,
            envelope_sender=arrival.sender,
            sender=received_mail.shown(mail.sender),
            subject=mail.subject[:SUBJECT_CHARACTERS],
            message_id_field=mail.message_id,
            email_id=None,
            size=len(arrival.content),
            attachment_count=len(mail.attachments),
            authentication=msgspec.json.encode(results).decode(),
            spam=None if spam is None else msgspec.json.encode(spam).decode(),
            client_address=arrival.client_address,
            fingerprint=fingerprint,
            received_at=now,
        )
        async with self._transaction(arrival) as tx:
            account = await self._admit(tx, arrival)
            row = msgspec.structs.replace(row, email_id=await _answered(tx, account_id, mail))
            if not await received.insert(tx, row, content):
                raise _NotTaken(Result.DUPLICATE)
            if account.names_event(events.EventType.RECEIVED):
                data = event_data.make(ctx, row, mail, route=arrival.route.match_key, now=now)
                files = tuple(file.content for file in mail.attachments)
                await ctx.outbox.write_account(
                    tx, [events.AccountEvent(account_id, events.EventType.RECEIVED, now, data, files)]
                )
        ctx.webhook_wakeup.set()
        return Result.STORED

    @contextlib.asynccontextmanager
    async def _transaction(self, arrival: Arrival) -> AsyncIterator[store.Transaction]:
        async with self._commits.hold(arrival.route.account_id), self._ctx.store.transaction() as tx:
            yield tx

    async def _admit(self, tx: store.Transaction, arrival: Arrival) -> accounts.Account:
        """Count a mail under the lock of its account, or refuse it."""
        account_id = arrival.route.account_id
        account = (await accounts.lock(tx, [account_id])).get(account_id)
        if account is None or account.state != accounts.ACTIVE:
            raise _NotTaken(Result.SUSPENDED)
        await self._check_quotas(tx, arrival)
        day = times.day_of(self._ctx.clock())
        for network in (received.ALL_NETWORKS, login_rules.network_of(arrival.client_address)):
            await received.add_count(tx, account_id, day, network, len(arrival.content))
        return account

    async def _check_quotas(self, tx: store.Transaction, arrival: Arrival) -> None:
        account_id, day = arrival.route.account_id, times.day_of(self._ctx.clock())
        whole = await received.count_of_day(tx, account_id, day)
        if whole.messages >= MAX_MESSAGES_PER_DAY or whole.bytes + len(arrival.content) > MAX_BYTES_PER_DAY:
            raise _NotTaken(Result.OVER_QUOTA)
        network = login_rules.network_of(arrival.client_address)
        part = await received.count_of_day(tx, account_id, day, network)
        if part.messages >= MAX_PER_NETWORK or part.bytes + len(arrival.content) > MAX_BYTES_PER_NETWORK:
            raise _NotTaken(Result.OVER_NETWORK_QUOTA)

    def _trace(self, arrival: Arrival, *, identifier: str) -> str:
        """The value of `Received` (RFC 5321 section 4.4)."""
        helo = arrival.helo if _HOST.fullmatch(arrival.helo) else "unknown"
        date = builder.format_date(self._ctx.clock() // times.SECOND)
        return (
            f"from {helo} ([{arrival.client_address}]) by {self._host} with {arrival.protocol} id {identifier}; {date}"
        )


def _head(content: bytes) -> bytes:
    """The header with the end of its last line, as far as it is not too long."""
    most = MAX_HEADER_BYTES + 2
    end = content.find(b"\r\n\r\n", 0, most)
    return content[:most] if end < 0 else content[: end + 2]


def _read(content: bytes, arrival: Arrival) -> received_mail.ReceivedMail:
    return received_mail.read(content, sender=arrival.sender, recipients=(arrival.recipient,))


def _fingerprint(arrival: Arrival) -> bytes:
    return hashlib.sha256(f"{arrival.recipient}\n".encode() + arrival.content).digest()


def _field(name: str, value: str) -> bytes:
    return f"{name}: {value}\r\n".encode()


def _without_claims(content: bytes, host: str) -> bytes:
    """A mail without results that claim to be of this host, as a field (RFC 8601 section 5) or as a part of ours."""
    head, name = _head(content), host.lower().encode()

    def kept(field: re.Match[bytes]) -> bytes:
        # The name may be a quoted string, with a backslash before any of its characters.
        is_ours = field[1].lower() == _RESULTS and name in field[0].lower().replace(b"\\", b"")
        return b"" if is_ours else field[0]

    return _FIELD.sub(kept, _FOLDED.sub(b"", head)) + content[len(head) :]


def _spam(found: spamd.Verdict | spamd.Failure | None) -> events.ReceivedSpam | None:
    """The verdict; without one, mail is taken as it is."""
    if not isinstance(found, spamd.Verdict):
        return None
    return events.ReceivedSpam(score=found.score, required=found.threshold, is_spam=found.is_spam)


async def _answered(tx: store.Transaction, account_id: str, mail: received_mail.ReceivedMail) -> str | None:
    """The newest message of the account that a mail answers."""
    named = map(message_ids.message_of, (*mail.in_reply_to, *reversed(mail.references)))
    for message_id in list(dict.fromkeys(each for each in named if each is not None))[:MAX_ANSWERED]:
        if await messages.by_id(tx, account_id, message_id) is not None:
            return message_id
    return None
