"""The load: senders over HTTP and over SMTP who do what docs/errors.md says, and record every answer.

Each submission has its own idempotency key, which is also its subject. Its sender repeats it, at any listener that
answers, until it is accepted: after a lost connection, 429, 503, `idempotency_in_progress` and 500, and over SMTP after
every 4xx. Some are sent once more although they were accepted, some twice at once, and a few senders stop after the
first try: a submission without an answer may be stored or not, but never twice. Any other refusal, or a different
answer to the same key, is a finding.
"""

import asyncio
import contextlib
import functools
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import httpx

from tests.chaos import flaky_host, hosts
from tests.chaos.customers import Customer
from tests.reliability import submission_service

DOMAINS: Final = ("north.example.net", "south.example.net", "east.example.org")
MAX_RECIPIENTS: Final = 4
RECIPIENT_KINDS: Final = {flaky_host.FINE: 0.8, flaky_host.LATER: 0.12, flaky_host.GONE: 0.08}
# A key that nobody answers for so long is not answered at all.
TIMEOUT_SECONDS: Final = 600.0
ANSWER_SECONDS: Final = 20.0
RETRY_SECONDS: Final = 0.05
HTTP, SMTP = "http", "smtp"
AGAIN: Final = {"service_unavailable", "temporary_failure", "idempotency_in_progress", "rate_limited", "internal_error"}
DOUBLED_SHARE, REPEATED_SHARE, ABANDONED_SHARE = 0.05, 0.1, 0.2


@dataclass(slots=True)
class Submission:
    """What a sender submits, and the answer that it got."""

    key: str
    customer: Customer
    listener: str
    recipients: tuple[str, ...]
    message_id: str | None = None
    answer: bytes = b""
    tries: int = 0
    is_abandoned: bool = False

    @property
    def is_acknowledged(self) -> bool:
        return self.message_id is not None


# One try: how long to wait before the next one, or None when the submission was accepted.
Attempt = Callable[[Submission], Awaitable[float | None]]


@dataclass(slots=True)
class Load:
    """All senders, and all submissions."""

    listeners: Sequence[hosts.Host]
    customers: Sequence[Customer]
    chance: random.Random
    pause_seconds: float
    submissions: list[Submission] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    answers: int = 0
    # By the clock of the event loop; a repetition counts too.
    accepted_at: list[float] = field(default_factory=list)
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def acknowledged(self) -> int:
        return sum(submission.is_acknowledged for submission in self.submissions)

    def listener(self, is_open: Callable[[hosts.Host], object]) -> hosts.Host | None:
        """A listener that answers, as a load balancer would choose it."""
        found = [listener for listener in self.listeners if is_open(listener)]
        return self.chance.choice(found) if found else None

    def submission(self, listener: str) -> Submission:
        """A new submission."""
        chance, number = self.chance, next(self._numbers)
        fates = chance.choices(
            list(RECIPIENT_KINDS), list(RECIPIENT_KINDS.values()), k=chance.randint(1, MAX_RECIPIENTS)
        )
        to = tuple(f"{fate}.{number}.{place}@{chance.choice(DOMAINS)}" for place, fate in enumerate(fates))
        written = Submission(f"{listener}-{number}", chance.choice(self.customers), listener, to)
        self.submissions.append(written)
        return written

    def note(self, submission: Submission, message_id: str, answer: bytes) -> None:
        """A submission was accepted; a repetition must get the same answer."""
        self.answers += 1
        if submission.message_id is None:
            submission.message_id, submission.answer = message_id, answer
        elif (submission.message_id, submission.answer) != (message_id, answer):
            self.problems.append(f"{submission.key}: accepted as {submission.message_id}, and then as {message_id}")

    async def work(self, listener: str, attempt: Attempt) -> None:
        """One submission after the other, until the load is over."""
        while not self.is_over.is_set():
            submission = self.submission(listener)
            gives_up_early = self.chance.random() < ABANDONED_SHARE
            together = (
                2 if listener == HTTP and self.chance.random() < DOUBLED_SHARE else 1
            )  # an SMTP session has one sender
            await asyncio.gather(
                *(self.send_until_answered(submission, attempt, gives_up_early=gives_up_early) for _ in range(together))
            )
            if submission.is_acknowledged and self.chance.random() < REPEATED_SHARE:
                await self.send_until_answered(submission, attempt)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.chance.uniform(0, 2 * self.pause_seconds)):
                    await self.is_over.wait()

    async def send_until_answered(
        self, submission: Submission, attempt: Attempt, *, gives_up_early: bool = False
    ) -> None:
        """Repeat a submission until it is accepted; `gives_up_early` tries once, when a listener answers."""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while True:
                    wait = await attempt(submission)
                    if wait is None:
                        return
                    if gives_up_early and submission.tries:
                        submission.is_abandoned = True
                        return
                    await asyncio.sleep(wait)
        except TimeoutError:
            self.problems.append(
                f"{submission.key}: nobody answered {submission.tries} tries in {TIMEOUT_SECONDS:.0f} s"
            )
        except SubmissionRefused as refused:
            self.problems.append(f"{submission.key}: {refused}")

    async def post(self, client: httpx.AsyncClient, submission: Submission) -> float | None:
        """One request; how long to wait for the next one, or None when it was accepted."""
        listener = self.listener(lambda host: host.http)
        if listener is None:
            return RETRY_SECONDS
        body = {
            "from": submission.customer.sender,
            "to": submission.recipients,
            "subject": submission.key,
            "text": "Hello",
        }
        headers = {"Authorization": f"Bearer {submission.customer.api_key}", "Idempotency-Key": submission.key}
        was_acknowledged = submission.is_acknowledged
        submission.tries += 1
        try:
            response = await client.post(f"{listener.http}/emails", json=body, headers=headers)
        except httpx.TransportError:
            return RETRY_SECONDS
        if response.status_code == httpx.codes.ACCEPTED:
            self.accepted_at.append(asyncio.get_running_loop().time())
            self.note(submission, response.json()["id"], response.content)
            if was_acknowledged and response.headers.get("idempotent-replayed") != "true":
                self.problems.append(f"{submission.key}: a repetition was not called one")
            return None
        if response.json()["code"] not in AGAIN:
            raise SubmissionRefused(response.text)
        return float(response.headers.get("retry-after", RETRY_SECONDS))


class SubmissionRefused(Exception):
    """A submission was refused permanently, which must not happen."""


class SmtpSender:
    """Somebody with an SMTP connection, who opens another one when it is lost."""

    def __init__(self, load: Load) -> None:
        self._load = load
        # A connection is logged in for one customer.
        self._sessions: dict[str, submission_service.Session] = {}

    async def hand_in(self, submission: Submission) -> float | None:
        """One transaction; how long to wait for the next one, or None when it was accepted."""
        account_id = submission.customer.account_id
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reply = await self._hand_in(submission)
        except (OSError, EOFError, TimeoutError):
            reply = None
        if reply is None or reply.code == submission_service.STOPPING:
            self._close(account_id)
            return RETRY_SECONDS
        if reply.code == submission_service.ACCEPTED:
            self._load.accepted_at.append(asyncio.get_running_loop().time())
            self._load.note(submission, reply.message_id, reply.text.encode())
            return None
        self._close(account_id)
        if not reply.is_temporary:
            raise SubmissionRefused(reply)
        return RETRY_SECONDS

    async def _hand_in(self, submission: Submission) -> submission_service.Reply:
        session = self._sessions.get(submission.customer.account_id)
        if session is None:
            listener = self._load.listener(lambda host: host.smtp)
            session = await submission_service.Session.open(listener.smtp if listener else None)
            self._sessions[submission.customer.account_id] = session
            reply = await session.log_in(submission.customer.login)
            if reply.code >= submission_service.REFUSED_FROM:
                return reply
        submission.tries += 1
        commands = [
            f"MAIL FROM:<{submission.customer.sender}>",
            *(f"RCPT TO:<{to}>" for to in submission.recipients),
            "DATA",
        ]
        session.write("".join(f"{command}\r\n" for command in commands).encode())
        replies = [await session.reply() for _ in commands]
        refusals = [reply for reply in replies if reply.code >= submission_service.REFUSED_FROM]
        return refusals[0] if refusals else await session.say(content(submission))

    def _close(self, account_id: str) -> None:
        session = self._sessions.pop(account_id, None)
        if session is not None:
            session.close()

    def close(self) -> None:
        for account_id in list(self._sessions):
            self._close(account_id)


def content(submission: Submission) -> bytes:
    """A message as a mail client writes it, with the dot that ends it; each try has another Message-ID."""
    fields = (
        f"From: {submission.customer.sender}",
        f"To: {submission.recipients[0]}",
        f"Subject: {submission.key}",
        f"Message-ID: <{submission.tries}.{submission.key}@client.example.org>",
        f"Idempotency-Key: {submission.key}",
    )
    return "\r\n".join((*fields, "", "Hello", ".", "")).encode()


@contextlib.asynccontextmanager
async def sending(load: Load, *, http: int, smtp: int) -> AsyncIterator[None]:
    """So many senders at work for the time of the block; at its end each finishes its last submission."""
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
    smtp_senders = [SmtpSender(load) for _ in range(smtp)]
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS, limits=limits, trust_env=False) as client:
        post = functools.partial(load.post, client)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(http):
                tasks.create_task(load.work(HTTP, post))
            for smtp_sender in smtp_senders:
                tasks.create_task(load.work(SMTP, smtp_sender.hand_in))
            try:
                yield
            finally:
                load.is_over.set()
        for smtp_sender in smtp_senders:
            smtp_sender.close()
        await asyncio.sleep(0)  # lets the loop close the aborted transports
