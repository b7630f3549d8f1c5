"""A real service for browser tests: `postroad dev` in a process of its own, on free ports, in a temporary folder.

One is shared by all tests of a worker, so a test that changes what others look at makes an account of its own
(`new_account`). What tests put into the store they put there through services and storage, as another process of the
installation would.
"""

import contextlib
import dataclasses
import datetime as dt
import email.message
import email.utils
import functools
import itertools
import json
import smtplib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from benchmarks.peers import process
from postroad import context
from postroad.cli.dev import demo_account, sample_week
from postroad.cli.dev import service as dev
from postroad.cli.framework import data_folder
from postroad.model.bounces import disposition
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.inbound import routes
from postroad.services.messages import dev_inbox
from postroad.services.operations import destinations
from postroad.services.people import users
from postroad.services.queue import holds, sources
from postroad.storage.mail import mail_counts
from postroad.storage.operations import processes
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, received_rows
from tests.cli import cli_runner
from tests.services import claimed_mail

DATA: Final = ".postroad"
# Two source addresses, and the one whose page is looked at.
SOURCES: Final = {"POSTROAD_SOURCES__OUT_1__ADDRESS": "127.0.0.1", "POSTROAD_SOURCES__OUT_2__ADDRESS": "127.0.0.2"}
SOURCE: Final = "out_2"
CREDITS: Final = 1_000
RECEIVED: Final = (
    ("Welcome to the Corner Shop", "ada@example.net"),
    ("Your order 4711 is on its way", "grace@example.net"),
    ("Choose a new password", "alan@example.net"),
)


@dataclass(frozen=True, slots=True)
class Login:
    """What a user types into the login page."""

    email: str
    password: str


@dataclass(frozen=True, slots=True)
class DevService:
    """A running service and its demo account. `waiting` is a message of another account that waits for a day."""

    base_url: str
    login: Login
    api_key: str
    dev_info: dict[str, Any]
    account: stored_accounts.Account
    demo_ids: sample_week.SampleIds
    received: str
    received_mail: str
    deferred_message: str
    deferred_login: Login
    job: str
    service: cli_runner.Service
    ctx: context.Context
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def new_account(self, name: str = "Shop", *, domain: bool = True) -> tuple[stored_accounts.Account, Login]:
        """An account that nobody else has, with credits, a verified domain and its owner."""
        number = next(self.numbers)
        account = await accounts.create(self.ctx, f"{name} {number}")
        await credits.add(self.ctx, account.id, CREDITS, "for tests")
        if domain:
            await domains.add(self.ctx, account.id, f"shop-{number}.example", verified=True)
        return account, await self.new_person(account.id, role=callers.Role.OWNER)

    async def new_person(self, account_id: str, *, role: callers.Role) -> Login:
        """One more user of an account."""
        email = f"{role}-{next(self.numbers)}@shop.example"
        await users.create(self.ctx, account_id, email=email, password=sample_week.PASSWORD, role=role)
        return Login(email, sample_week.PASSWORD)


@contextlib.asynccontextmanager
async def running(folder: Path, *, messages: int) -> AsyncIterator[DevService]:
    """Started and ready, with a demo account that has sent so many messages; stopped, in order, at the end.

    The account is made as the service would make it, and filled before anything could deliver what is written.
    """
    data = data_folder.DataFolder(folder / DATA)
    data.prepare()
    async with composition.open_context(data.settings(environment={**dev.WITH_SAMPLE, **SOURCES})) as ctx:
        data.write_info(await demo_account.prepare(ctx, None))
        account = await demo_account.account_of(ctx)
        deferred_message, deferred_login = await _defer(ctx)
        job = await _operate(ctx)
        # A port that is known before: passkeys are bound to it, and the sample webhook goes there.
        http = f"127.0.0.1:{process.free_port()}"
        endpoint = f"http://{http}{dev_inbox.WEBHOOK_PATH}"
        demo_ids = await sample_week.write(ctx, data, account.id, count=messages, endpoint=endpoint)
        assert demo_ids is not None
        with _started(folder, http=http) as (service, dev_info):
            received = _receive(dev_info)
            yield DevService(
                base_url=dev_info["base_url"],
                login=Login(**dev_info["login"]),
                api_key=dev_info["api_key"],
                dev_info=dev_info,
                account=account,
                demo_ids=demo_ids,
                received=received,
                received_mail=await _take_mail(ctx, account.id, demo_ids.message),
                deferred_message=deferred_message,
                deferred_login=deferred_login,
                job=job,
                service=service,
                ctx=ctx,
            )


@contextlib.contextmanager
def _started(folder: Path, *, http: str) -> Iterator[tuple[cli_runner.Service, dict[str, Any]]]:
    """`postroad dev`, and what its `dev.json` says."""
    words = ("dev", "--sample-week", "--http", http, "--smtp", "127.0.0.1:0")
    file = folder / DATA / "dev.json"
    with cli_runner.Service(*words, folder=folder, environment=SOURCES) as service:
        service.wait_for(lambda: "started" in service.errors.read_text() or None, what="the start")
        # The one of before is out of sight until this one has taken its place.
        yield (
            service,
            json.loads(service.wait_for(lambda: file.read_text() if file.exists() else None, what="dev.json")),
        )
        code, _ = service.stop()
        assert code == 0, service.errors.read_text()


def _receive(dev_info: dict[str, Any]) -> str:
    """Put mail into the simulator's inbox, as a destination would get it; returns the newest one's id."""
    with smtplib.SMTP(dev_info["sink"]["host"], dev_info["sink"]["port"]) as client:
        for place, (subject, name) in enumerate(RECEIVED):
            message = email.message.EmailMessage()
            message["From"], message["To"], message["Subject"] = "Corner Shop <hello@example.com>", name, subject
            message["Date"] = email.utils.format_datetime(dt.datetime(2026, 1, 31, 9, place, tzinfo=dt.UTC))
            message.set_content("Hello,\n\nThanks for joining us.\n")
            message.add_alternative("<h1>Hello</h1><p>Good to have <b>you</b> with us.</p>", subtype="html")
            client.send_message(message)
    credential = (dev_info["smtp"]["username"], dev_info["smtp"]["password"])
    newest = httpx.get(f"{dev_info['base_url']}/v1/inbox", auth=credential).json()["messages"][0]
    return str(newest["id"])


async def _take_mail(ctx: context.Context, account_id: str, message_id: str) -> str:
    """Mail that the demo account has received, the last of it as the answer to a message; returns that."""
    (route,) = await routes.of_account(ctx, account_id, limit=1)
    spam = '{"score": 9.1, "required": 5.0, "is_spam": true}'
    take = functools.partial(received_rows.put, ctx, account_id, route_id=route.id)
    await take(sender="Win now <win@offers.example>", subject="You have won", spam=spam, attachment_count=0)
    await take(sender="Grace <grace@example.org>", subject="Where is my order?", results=received_rows.FAILED)
    return (await take(email_id=message_id)).id


async def _operate(ctx: context.Context) -> str:
    """What an operator has done, and what another host reports; returns a job. No test sends mail that it concerns."""
    now = ctx.clock()
    await holds.hold(ctx, domain="held.example", reason="Their postmaster asked us to wait until Monday.")
    await destinations.pause(
        ctx, "yahoo", reason="They defer all mail since noon; postmaster asked.", until=now + 6 * times.HOUR
    )
    blocked = "Google blocks it: 5.7.1 Our system has detected an unusual rate of mail from your address."
    await sources.pause(ctx, "out_1", provider="google", reason=blocked, until=now + 2 * times.HOUR)
    await sources.warm_up(ctx, SOURCE)
    today = times.day_of(now)
    attempts = [
        mail_counts.SourceCount("out_1", "google", today, delivered=4_180, deferred=31, refused=44, blocked=40),
        mail_counts.SourceCount("out_1", "microsoft", today, delivered=2_903, deferred=12, refused=3),
        mail_counts.SourceCount(SOURCE, "google", today, delivered=41, deferred=1),
        mail_counts.SourceCount(SOURCE, "microsoft", today, delivered=19),
    ]
    await destinations.set_limits(ctx, "google", {"connections": 4}, reason="Rate limited", until=None)
    reply = "451 4.7.500 Server busy. Please try again later from [192.0.2.4]."
    retried = processes.Job(
        ctx.new_id(identifiers.JOB, now=now),
        "queue.retry",
        "mail to example.org",
        processes.FINISHED,
        12_500,
        None,
        '{"changed":12031}',
        "",
        now - times.HOUR,
        now - 50 * 60 * times.SECOND,
        now - 50 * 60 * times.SECOND,
    )
    rates = '{"delivered":40.4,"deferred":3.0}'
    async with ctx.store.transaction() as tx:
        await processes.put_queues(
            tx, [processes.QueueStatus("mail2-812", "microsoft", "slowed", reply, now + times.HOUR, now + times.HOUR)]
        )
        await processes.put(
            tx, processes.Process("mail2-812", "mail2", 812, ("delivery",), "0.1.0", now - times.DAY, now, rates)
        )
        await processes.insert_job(tx, retried)
        await mail_counts.add_sources(tx, attempts)
    return retried.id


async def _defer(ctx: context.Context) -> tuple[str, Login]:
    """A message whose next attempt is too far away to come by itself, and who may see it."""
    now = ctx.clock()
    # An hour ago, because what was tried a moment ago is not tried again.
    ctx = dataclasses.replace(ctx, clock=lambda: now - times.HOUR)
    account = await accounts.create(ctx, "Patient")
    login = Login("owner@patient.example", sample_week.PASSWORD)
    await users.create(ctx, account.id, email=login.email, password=login.password, role=callers.Role.OWNER)
    await accepted_mail.allow_sending(ctx, account.id, domain="patient.example")
    message_id, (claimed,) = await claimed_mail.another(
        ctx, account.id, "late@example.net", sender="shop@patient.example"
    )
    dev_info = claimed_mail.outcome(ctx, claimed, disposition.Verdict.RETRY, code=451, response="4.7.1 Come back later")
    await ctx.outcome_commits.submit([msgspec.structs.replace(dev_info, next_attempt_at=now + times.DAY)])
    return message_id, login
