"""The only way in for mail, on both engines: the order of checks, idempotency, and that a refusal leaves nothing.

The tests of this file share one PostgreSQL database, emptied before each: making one takes longer than most of them.
"""

import asyncio
import base64
import contextlib
import dataclasses
import email
import email.policy
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from email.message import EmailMessage
from typing import Any

import apsw
import asyncpg
import msgspec
import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.mail.accept import compose, submit
from postroad.mail.accept import transaction as acceptance
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.operations import operator_jobs
from postroad.services.people import api_keys, authentication, credentials, logins, users
from postroad.services.templates import templates
from postroad.storage.engine import open_store, store
from postroad.storage.mail import messages
from postroad.storage.people import accounts as stored_accounts
from tests.contexts import Clock

DAY_SECONDS = 24 * 60 * 60
REQUEST = send_request.SendRequest(
    sender="Shop <shop@example.com>", to=("ada@example.org", "bob@example.org"), subject="Hello", text="Hi"
)
FROM_TEMPLATE = msgspec.structs.replace(REQUEST, text=None, subject=None, template="welcome", variables={"name": "Ada"})
# Decoding and composing this much leaves the event loop.
LARGE = msgspec.structs.replace(REQUEST, text="Zeile für Zeile\n" * 20_000)


@dataclasses.dataclass(slots=True)
class Shop:
    """An account that may send, and the caller that sends for it."""

    ctx: context.Context
    clock: Clock
    account: stored_accounts.Account
    who: callers.Caller
    domain_id: str
    sent: int = 0

    async def send(
        self,
        request: send_request.SendRequest = REQUEST,
        *,
        key: str | None = "order-1",
        who: callers.Caller | None = None,
    ) -> acceptance.Accepted:
        self.sent += 1
        request_id = f"req_{self.sent}"
        return await submit.submit(
            self.ctx, who or self.who, request, request_id=request_id, source=statuses.Source.API, key=key
        )

    async def refusal(self, request: send_request.SendRequest = REQUEST, *, key: str = "order-1") -> str:
        with pytest.raises(errors.PostroadError) as refused:
            await self.send(request, key=key)
        return refused.value.code

    async def balance(self) -> tuple[int, int]:
        account = await accounts.find(self.ctx, self.account.id)
        return account.available, account.reserved

    async def rows(self) -> dict[str, int]:
        """How many rows each table has, in a consistent store."""
        assert (await operator_jobs.check_consistency(self.ctx)).findings == []
        return await row_counts(self.ctx.settings.database.url)


async def row_counts(url: str) -> dict[str, int]:
    if url.startswith("sqlite"):
        connection = apsw.Connection(str(open_store.sqlite_path(url)))
        with contextlib.closing(connection):
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            return {name: connection.execute(f"SELECT COUNT(*) FROM {name}").get for name in names}  # noqa: S608
    server = await asyncpg.connect(url)
    try:
        tables = await server.fetch(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
            " AND NOT relispartition"
        )
        return {row[0]: await server.fetchval(f"SELECT COUNT(*) FROM {row[0]}") for row in tables}  # noqa: S608
    finally:
        await server.close()


@pytest_asyncio.fixture
async def shop(ctx: context.Context, clock: Clock, account: stored_accounts.Account) -> Shop:
    await credits.add(ctx, account.id, 100, None)
    domain = await domains.add(ctx, account.id, "example.com", verified=True)
    await templates.put(
        ctx, account.id, "welcome", subject="Welcome {{name}}", text="Hi {{name}}", html="<p>Hi {{name}}"
    )
    who = callers.Caller(account.id, "cred_" + 28 * "a", callers.Scheme.PASSWORD, callers.PASSWORD_PERMISSIONS)
    return Shop(ctx, clock, account, who, domain.id)


@pytest_asyncio.fixture
async def other_process(settings: config.Settings, clock: Clock, shop: Shop) -> AsyncIterator[Shop]:
    """The same shop, served by another process on the same store."""
    async with composition.open_context(settings, clock=clock) as opened:
        yield dataclasses.replace(shop, ctx=opened, sent=1000)


# Accepting


async def test_an_accepted_message_is_stored_with_all_that_belongs_to_it(shop: Shop) -> None:
    before = await shop.rows()
    accepted = await shop.send(msgspec.structs.replace(REQUEST, tags=("welcome",)))
    assert not accepted.replayed
    grown = {name: count - before[name] for name, count in (await shop.rows()).items() if count != before[name]}
    assert grown == {
        "messages": 1,
        "bodies": 1,
        "recipients": 2,
        "queue": 2,
        "message_tags": 1,
        "ledger": 1,
        "idempotency_keys": 1,
        "hourly_counts": 1,
    }
    assert await shop.balance() == (98, 2)


# Order of checks: what came after the first request does not matter to its replay


async def suspend(shop: Shop) -> None:
    await accounts.suspend(shop.ctx, shop.account.id, "too many bounces")


async def remove_domain(shop: Shop) -> None:
    await domains.remove(shop.ctx, shop.account.id, shop.domain_id)


async def remove_template(shop: Shop) -> None:
    await templates.remove(shop.ctx, shop.account.id, "welcome")


async def exhaust_credits(shop: Shop) -> None:
    available, _ = await shop.balance()
    while available:
        count = min(available, 50)
        request = msgspec.structs.replace(REQUEST, to=tuple(f"p{number}@example.org" for number in range(count)))
        await shop.send(request, key=None)
        available -= count


async def exceed_rate(shop: Shop) -> None:
    with contextlib.suppress(errors.RateLimited):
        for _ in range(1000):
            shop.ctx.rate_limiter.take(shop.account.id, now=shop.clock())


LATER = {
    "account_suspended": suspend,
    "rate_limited": exceed_rate,
    "forbidden": remove_domain,
    "invalid_request": remove_template,
    "insufficient_credits": exhaust_credits,
}


@pytest.mark.parametrize("code", LATER)
async def test_a_key_is_answered_as_it_was_then_whatever_happened_since(shop: Shop, code: str) -> None:
    first = await shop.send(FROM_TEMPLATE)
    await LATER[code](shop)
    before = await shop.rows()
    again = await shop.send(FROM_TEMPLATE)
    assert again == msgspec.structs.replace(first, replayed=True, full_at=again.full_at)
    other = msgspec.structs.replace(FROM_TEMPLATE, variables={"name": "Bob"})
    assert await shop.refusal(other) == "idempotency_conflict"
    assert await shop.refusal(FROM_TEMPLATE, key="order-2") == code
    assert await shop.rows() == before


async def test_the_rules_of_the_fields_come_before_the_key(shop: Shop) -> None:
    await shop.send()
    assert await shop.refusal(msgspec.structs.replace(REQUEST, to=("bob@",))) == "invalid_request"


IN_ORDER: list[tuple[str, Callable[[Shop], Awaitable[None]]]] = [
    ("account_suspended", suspend),
    ("rate_limited", exceed_rate),
    ("forbidden", remove_domain),
    ("insufficient_credits", exhaust_credits),
]


@pytest.mark.parametrize("place", range(len(IN_ORDER)))
async def test_of_several_reasons_the_first_in_order_is_reported(shop: Shop, place: int) -> None:
    for _, happen in reversed(IN_ORDER[place:]):
        await happen(shop)
    assert await shop.refusal() == IN_ORDER[place][0]
    bad = msgspec.structs.replace(REQUEST, subject="two\nlines")
    assert await shop.refusal(bad) == "invalid_request"


# A refusal leaves nothing

REFUSED: dict[str, tuple[Callable[[Shop], Awaitable[None]] | None, send_request.SendRequest]] = {
    "invalid_request": (None, msgspec.structs.replace(REQUEST, to=())),
    "unknown template": (None, msgspec.structs.replace(FROM_TEMPLATE, template="unknown")),
    "missing variable": (None, msgspec.structs.replace(FROM_TEMPLATE, variables={})),
    "payload_too_large": (
        None,
        msgspec.structs.replace(REQUEST, text="x" * 62 + ("\r\n" + "x" * 62) * (10 * 2**20 // 64)),
    ),
    "account_suspended": (suspend, REQUEST),
    "rate_limited": (exceed_rate, REQUEST),
    "forbidden": (None, msgspec.structs.replace(REQUEST, sender="shop@example.net")),
    "insufficient_credits": (exhaust_credits, REQUEST),
}


async def undo(shop: Shop) -> None:
    await accounts.resume(shop.ctx, shop.account.id)
    await credits.add(shop.ctx, shop.account.id, 100, None)
    shop.clock.pass_seconds(60)


@pytest.mark.parametrize("case", REFUSED)
async def test_a_refused_request_leaves_nothing_and_its_key_is_free_for_any_body(shop: Shop, case: str) -> None:
    happen, request = REFUSED[case]
    if happen:
        await happen(shop)
    before, balance = await shop.rows(), await shop.balance()
    assert await shop.refusal(request) == {
        "unknown template": "invalid_request",
        "missing variable": "invalid_request",
    }.get(case, case)
    # It may count towards the rate.
    assert await shop.rows() == before
    assert await shop.balance() == balance
    assert shop.ctx.in_flight == set()
    await undo(shop)
    assert not (await shop.send(msgspec.structs.replace(REQUEST, text="Something else"))).replayed


# At once


async def gather(*calls: Awaitable[acceptance.Accepted]) -> tuple[list[acceptance.Accepted], list[BaseException]]:
    results = await asyncio.gather(*calls, return_exceptions=True)
    accepted = [result for result in results if isinstance(result, acceptance.Accepted)]
    return accepted, [result for result in results if isinstance(result, BaseException)]


@pytest.mark.parametrize("request_", [REQUEST, LARGE], ids=["small", "large"])
async def test_fifty_identical_requests_at_once_are_one_message(shop: Shop, request_: send_request.SendRequest) -> None:
    accepted, refused = await gather(*(shop.send(request_) for _ in range(50)))
    assert len({one.response for one in accepted}) == 1
    assert sum(not one.replayed for one in accepted) == 1
    assert {type(refusal) for refusal in refused} <= {errors.IdempotencyInProgress}
    rows = await shop.rows()
    assert (rows["messages"], rows["recipients"], rows["idempotency_keys"]) == (1, 2, 1)
    assert await shop.balance() == (98, 2)


async def test_fifty_identical_requests_over_two_processes_are_one_message(shop: Shop, other_process: Shop) -> None:
    accepted, refused = await gather(*(one.send() for _ in range(25) for one in (shop, other_process)))
    assert len({one.response for one in accepted}) == 1
    assert sum(not one.replayed for one in accepted) == 1
    # On SQLite the second process may also find the store busy; that too is reported as such, and nothing was stored.
    assert {type(refusal) for refusal in refused} <= {errors.IdempotencyInProgress, errors.TemporaryFailure}
    assert (await shop.rows())["messages"] == 1
    assert await shop.balance() == (98, 2)


async def test_one_key_with_two_bodies_at_once_is_one_message(shop: Shop, other_process: Shop) -> None:
    bodies = [msgspec.structs.replace(REQUEST, text=f"Body {number}") for number in range(10)]
    accepted, refused = await gather(*(one.send(body) for body in bodies for one in (shop, other_process)))
    assert len({one.message_id for one in accepted}) == 1
    allowed = {errors.IdempotencyInProgress, errors.IdempotencyConflict, errors.TemporaryFailure}
    assert {type(refusal) for refusal in refused} <= allowed
    assert (await shop.rows())["messages"] == 1


async def test_credits_are_spent_to_the_last_and_never_beyond(shop: Shop, other_process: Shop) -> None:
    # 100 credits and two recipients each: of 60 requests, 50 are paid for.
    accepted, refused = await gather(
        *((shop, other_process)[number % 2].send(key=f"order-{number}") for number in range(60))
    )
    assert len(accepted) == 50
    assert {type(refusal) for refusal in refused} == {errors.InsufficientCredits}
    assert await shop.balance() == (0, 100)


# Whose key it is


async def test_an_api_key_and_a_token_share_the_keys_of_their_credential(shop: Shop) -> None:
    ctx, account_id = shop.ctx, shop.account.id
    default, password = await credentials.create(ctx, account_id, "First")
    shop.clock.pass_seconds(1)
    second, _ = await credentials.create(ctx, account_id, "Second")
    _, of_default = await api_keys.create(
        ctx, account_id, credential_id=None, name="A", scopes=frozenset({callers.Permission.SEND})
    )
    _, of_second = await api_keys.create(
        ctx, account_id, credential_id=second.id, name="B", scopes=frozenset({callers.Permission.SEND})
    )
    user, _ = await users.create(ctx, account_id, email="o@example.com", password=None, role=callers.Role.OWNER)
    token = (await logins.issue_token(ctx, user)).token

    async def who(scheme: str, secret: str) -> callers.Caller:
        return await authentication.authenticate(ctx, f"{scheme} {secret}", client_address="127.0.0.1")

    by_password = await who("Basic", base64.b64encode(f"{default.username}:{password}".encode()).decode())
    first = await shop.send(who=by_password)
    for same in (await who("Bearer", of_default), await who("Bearer", token)):
        assert (await shop.send(who=same)).message_id == first.message_id
    assert (await shop.send(who=await who("Bearer", of_second))).message_id != first.message_id


async def test_an_account_without_credentials_is_the_scope_of_its_users(shop: Shop) -> None:
    person = dataclasses.replace(shop.who, credential_id=None, scheme=callers.Scheme.TOKEN)
    first = await shop.send(who=person)
    assert (await shop.send(who=person)).message_id == first.message_id
    assert (await shop.send()).message_id != first.message_id


async def test_a_key_lives_for_a_day(shop: Shop) -> None:
    first = await shop.send()
    shop.clock.pass_seconds(DAY_SECONDS - 1)
    assert (await shop.send()).replayed
    shop.clock.pass_seconds(1)
    second = await shop.send(msgspec.structs.replace(REQUEST, text="A new day"))
    assert not second.replayed
    assert second.message_id != first.message_id
    shop.clock.pass_seconds(DAY_SECONDS - 1)
    assert await shop.refusal() == "idempotency_conflict"


async def test_a_key_that_has_expired_is_not_replayed_by_a_refusal_either(shop: Shop) -> None:
    await shop.send()
    shop.clock.pass_seconds(DAY_SECONDS)
    await suspend(shop)
    assert await shop.refusal() == "account_suspended"


# Sender domain


async def test_a_domain_that_is_not_registered_is_forbidden(shop: Shop) -> None:
    for sender in ("shop@example.net", "shop@mail.example.com", "shop@xample.com", "a@example.com.evil.org"):
        with pytest.raises(errors.Forbidden, match=f"from: {sender.partition('@')[2]} is not a domain of this account"):
            await shop.send(msgspec.structs.replace(REQUEST, sender=sender))


async def test_a_domain_is_compared_in_its_normal_form(shop: Shop) -> None:
    await domains.add(shop.ctx, shop.account.id, "Bücher.example", verified=True)
    for number, sender in enumerate(
        ("a@EXAMPLE.com", "b@bücher.example", "c@BÜCHER.example", "d@xn--bcher-kva.example")
    ):
        await shop.send(msgspec.structs.replace(REQUEST, sender=sender), key=f"order-{number}")


async def test_a_domain_of_another_account_is_forbidden(shop: Shop) -> None:
    other = await accounts.create(shop.ctx, "Other")
    await domains.add(shop.ctx, other.id, "example.net", verified=True)
    assert await shop.refusal(msgspec.structs.replace(REQUEST, sender="shop@example.net")) == "forbidden"


async def test_a_domain_that_is_not_verified_is_forbidden_until_it_is(shop: Shop) -> None:
    domain = await domains.add(shop.ctx, shop.account.id, "example.net", verified=False)
    request = msgspec.structs.replace(REQUEST, sender="shop@example.net")
    with pytest.raises(errors.Forbidden, match=r"example\.net is not verified yet"):
        await shop.send(request)
    await domains.verify(shop.ctx, shop.account.id, domain.id, by="operator")
    await shop.send(request)


async def test_a_claim_ends_when_another_account_proves_the_domain(shop: Shop) -> None:
    lax = msgspec.structs.replace(
        shop.ctx.settings, domains=msgspec.structs.replace(shop.ctx.settings.domains, require_verified=False)
    )
    claimant = dataclasses.replace(shop, ctx=dataclasses.replace(shop.ctx, settings=lax))
    request = msgspec.structs.replace(REQUEST, sender="shop@example.net")
    await domains.add(shop.ctx, shop.account.id, "example.net", verified=False)
    await claimant.send(request)

    other = await accounts.create(shop.ctx, "Other")
    await domains.add(shop.ctx, other.id, "example.net", verified=True)

    assert await claimant.refusal(request, key="order-2") == "forbidden"


async def test_a_domain_removed_by_another_process_is_forbidden_within_a_second(
    shop: Shop, other_process: Shop
) -> None:
    await shop.send()
    await remove_domain(other_process)
    shop.clock.pass_seconds(1)
    assert await shop.refusal(key="order-2") == "forbidden"


# Templates


async def mime_of(shop: Shop, accepted: acceptance.Accepted) -> EmailMessage:
    async with shop.ctx.store.reading() as tx:
        body = await messages.body(tx, shop.account.id, accepted.message_id)
    assert body is not None
    return email.message_from_bytes(body, policy=email.policy.default)


def text_of(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    assert part is not None
    return str(part.get_content()).strip()


async def test_a_template_is_filled_in(shop: Shop) -> None:
    request = msgspec.structs.replace(FROM_TEMPLATE, variables={"name": "<b>{{ 7*7 }}", "unused": True})
    accepted = await shop.send(request)
    message = await mime_of(shop, accepted)
    assert message["Subject"] == "Welcome <b>{{ 7*7 }}"
    assert text_of(message, "plain") == "Hi <b>{{ 7*7 }}"
    assert text_of(message, "html") == "<p>Hi &lt;b&gt;{{ 7*7 }}"
    assert msgspec.json.decode(accepted.response)["subject"] == "Welcome <b>{{ 7*7 }}"


async def test_a_template_of_another_account_is_unknown(shop: Shop) -> None:
    other = await accounts.create(shop.ctx, "Other")
    await templates.put(shop.ctx, other.id, "theirs", subject="S", text="T", html=None)
    with pytest.raises(errors.InvalidRequest, match="template: 'theirs' does not exist in this account"):
        await shop.send(msgspec.structs.replace(FROM_TEMPLATE, template="theirs"))


# Large messages


LARGE_FILE = msgspec.structs.replace(REQUEST, attachments=(send_request.Attachment("a.bin", "QUJD" * 100_000),))


async def test_large_messages_leave_the_event_loop_and_small_ones_do_not(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A small request can become a large message: a template may repeat a value.
    await templates.put(shop.ctx, shop.account.id, "growing", subject="S", text="{{name}} " * 1000, html=None)
    growing = msgspec.structs.replace(FROM_TEMPLATE, template="growing", variables={"name": "x" * 1000})
    inline: list[bool] = []
    build = compose.compose

    def noted(*arguments: Any) -> acceptance.Submission:
        inline.append(threading.current_thread() is threading.main_thread())
        return build(*arguments)

    monkeypatch.setattr(compose, "compose", noted)
    for number, request in enumerate((REQUEST, FROM_TEMPLATE, LARGE, LARGE_FILE, growing)):
        await shop.send(request, key=f"order-{number}")
    assert inline == [True, True, False, False, False]


async def test_both_ways_give_the_same_message(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    files = (send_request.Attachment("ä.bin", "QUJD"), send_request.Attachment("b.png", "", None, "b"))
    request = msgspec.structs.replace(REQUEST, html="<p>Grüße", attachments=files)
    bodies, receipts = [], []
    for limit in (0, 10**9):
        monkeypatch.setattr(submit, "INLINE_CHARACTERS", limit)
        accepted = await shop.send(request, key=f"limit-{limit}")
        async with shop.ctx.store.reading() as tx:
            body = await messages.body(tx, shop.account.id, accepted.message_id)
        assert body is not None
        # Boundaries follow from the id, and the clock stands.
        bodies.append(re.sub(rb"=_[0-9a-f]{32}", b"=_", body.replace(accepted.message_id.encode(), b"em_")))
        receipts.append(msgspec.json.decode(accepted.response) | {"id": "", "request_id": ""})
        assert await shop.refusal(msgspec.structs.replace(request, to=("bob@",)), key="bad") == "invalid_request"
    assert bodies[0] == bodies[1]
    assert receipts[0] == receipts[1]


# A store that fails

FAULTS = {
    "messages": (messages, "insert"),
    "recipients": (messages, "insert_recipients"),
    "ledger": (stored_accounts, "record_entries"),
    "keys": (messages, "insert_idempotency_keys"),
}


@pytest.mark.parametrize("where", FAULTS)
@pytest.mark.parametrize(
    "fault", [errors.ServiceUnavailable("the disk is full", retry_after=1), RuntimeError("a bug")], ids=["full", "bug"]
)
async def test_a_store_that_fails_in_between_leaves_nothing_and_the_key_free(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, where: str, fault: Exception
) -> None:
    before = await shop.rows()

    async def fail(*_: object, **_named: object) -> None:
        raise fault

    with monkeypatch.context() as broken:
        broken.setattr(*FAULTS[where], fail)
        with pytest.raises(type(fault)):
            await shop.send()
    assert await shop.rows() == before
    assert await shop.balance() == (100, 0)
    assert shop.ctx.in_flight == set()
    assert not (await shop.send(msgspec.structs.replace(REQUEST, text="Other"))).replayed


async def test_a_commit_that_fails_leaves_nothing_and_the_key_free(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await shop.rows()
    transaction = shop.ctx.store.transaction

    @contextlib.asynccontextmanager
    async def uncommitted() -> AsyncIterator[store.Transaction]:
        async with transaction() as tx:
            yield tx
            raise errors.ServiceUnavailable("the disk of the database is full; nothing was accepted", retry_after=30)

    with monkeypatch.context() as broken:
        broken.setattr(shop.ctx.store, "transaction", uncommitted)
        assert await shop.refusal() == "service_unavailable"
    assert await shop.rows() == before
    assert not (await shop.send()).replayed


async def test_one_poisonous_message_does_not_hurt_its_neighbours(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    insert = messages.insert_recipients

    async def choosy(tx: store.Transaction, rows: Sequence[messages.NewRecipient]) -> None:
        if any(row.email == "poison@example.org" for row in rows):
            raise RuntimeError("a bug")
        await insert(tx, rows)

    monkeypatch.setattr(messages, "insert_recipients", choosy)
    poison = msgspec.structs.replace(REQUEST, to=("poison@example.org",))
    accepted, refused = await gather(
        *(shop.send(key=f"order-{number}") for number in range(5)), shop.send(poison, key="poison")
    )
    assert len(accepted) == 5
    assert [str(refusal) for refusal in refused] == ["a bug"]
    assert (await shop.rows())["messages"] == 5


async def test_a_caller_that_goes_away_leaves_no_stuck_key(shop: Shop) -> None:
    task = asyncio.create_task(shop.send())
    while not shop.ctx.in_flight:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shop.ctx.in_flight == set()
    first = await shop.send()
    assert (await shop.send()).response == first.response
    assert (await shop.rows())["messages"] == 1
    assert await shop.balance() == (98, 2)
