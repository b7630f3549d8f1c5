"""The wall clock jumps by an hour, in either direction, while the service runs: nothing is lost and nothing is doubled.

A jump forwards makes every lease look over, of those too who are at work: nobody takes it for theirs before they have
had the time to renew it. A jump backwards makes what waits for its next attempt wait for so much longer, and nothing
else. How fast mail goes and how long it may take is measured by a clock that nobody sets.
"""

import contextlib
from pathlib import Path

import pytest

from postroad import errors
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.domains import domain_registry as domains
from postroad.services.people import authentication, credentials, logins, users
from postroad.storage.mail import domains as stored_domains
from tests import accepted_mail, contexts
from tests.delivery import engine_harness
from tests.reliability import delivery_harness, service_process, sinks, whole_service
from tests.reliability.libc_faults import LibcFaults
from tests.reliability.sinks import Point

HOUR_SECONDS = 3600
MANY = 8
# Recipients on the first days of a sender domain, and in each message.
CAPS = (60, 100)
PART = 20
JUMPS = pytest.mark.parametrize("jump", [HOUR_SECONDS, -HOUR_SECONDS], ids=["forwards", "backwards"])


@JUMPS
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_running_service_delivers_and_reports_everything_once(
    url: str, tmp_path: Path, libc: LibcFaults, jump: int
) -> None:
    async with whole_service.running_service(tmp_path, url, *libc.words) as whole:
        await whole.accept("first", "second")
        gate = await whole.under_way("in flight", "reported")
        libc.move_clock(jump)
        # A clock that was set back may cost a moment: the bucket of the credential counts as empty, and fills again.
        await service_process.until(lambda: is_taken(whole, "after"))
        await whole.accept("and more", "and after")
        # Keys are kept for a day: an hour more or less changes nothing.
        assert (await whole.post("first")).headers["idempotent-replayed"] == "true"
        gate.open()
        whole.sink.release(Point.CONTENT)
    await whole.prove()


async def is_taken(whole: whole_service.WholeService, key: str) -> bool:
    response = await whole.post(key)
    assert response.status_code == 202 or response.json()["code"] == "rate_limited", response.text
    return response.status_code == 202


async def test_nobody_takes_over_what_others_are_sending_when_all_clocks_jump_forwards(url: str) -> None:
    clock = contexts.Clock()
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink)
        async with (
            delivery_harness.open_harness(url, tables, clock=clock) as harness,
            delivery_harness.open_context(url, tables, clock=clock) as other,
            engine_harness.running(harness.ctx) as (_, log),
            engine_harness.running(other) as (_, other_log),
        ):
            sink.hold(Point.CONTENT)
            addresses = await harness.send()
            await sink.waiting(Point.CONTENT)
            (held,) = await harness.rows()
            in_flight = sink.let_others_pass(Point.CONTENT)
            clock.pass_seconds(HOUR_SECONDS)
            # Both go on to work; whoever looks finds a lease that ended an hour ago.
            addresses += await harness.send(MANY, domain="later.example.net")
            other.mail_wakeup.set()
            await sink.got(MANY)
            await service_process.until(lambda: is_alone(harness))
            (row,) = await harness.rows()
            assert (row.worker, row.lost_leases) == (held.worker, 0)
            in_flight.set()
            await harness.finished()
            await harness.prove(addresses, sink)
        assert not [line for line in (*log, *other_log) if line["event"] == "previous_attempt_unrecorded"]


async def is_alone(harness: delivery_harness.DeliveryHarness) -> bool:
    return len(await harness.rows()) == 1


@JUMPS
async def test_what_waits_is_tried_once_more_and_new_mail_goes_at_once(url: str, jump: int) -> None:
    async with sinks.running() as sink, engine_harness.running_engine(url, port=sink.port) as harness:
        sink.answer = lambda _recipients: "451 4.7.1 later"
        waiting = await harness.send("ada@example.net")
        await harness.settle(waiting)
        due_in = await harness.due_in(waiting)
        sink.answer = lambda _recipients: sinks.ACCEPTED
        harness.pass_seconds(jump)
        if jump < 0:
            # It waits for as much longer as the clock was set back, and no more.
            assert await harness.due_in(waiting) == pytest.approx(due_in - jump, abs=0.000_001)
        await harness.settle(await send_after_jump(harness))
        if jump < 0:
            assert (await harness.see(waiting)).recipient.status == "deferred"
            harness.pass_seconds(await harness.due_in(waiting))
        assert (await harness.settle(waiting, attempts=2)).standing == ("delivered", 2, 250)
        assert sink.recipients.count("ada@example.net") == 1


async def send_after_jump(harness: engine_harness.EngineHarness) -> str:
    """A new message; a rate that has just seen the clock being set back may refuse it for a moment."""
    for _ in range(3):
        with contextlib.suppress(errors.RateLimited):
            return await harness.send("bob@example.net")
        harness.pass_seconds(1)
    raise AssertionError


@JUMPS
async def test_a_rate_is_neither_open_for_good_nor_closed_for_an_hour(url: str, jump: int) -> None:
    clock = contexts.Clock()
    limits = {"limits": {"request_rate": 1, "request_burst": MANY}}
    async with (
        delivery_harness.open_harness(url, limits, clock=clock) as harness,
        delivery_harness.open_context(url, limits, clock=clock) as other,
    ):

        async def burst() -> int:
            """How many go at once, by both processes."""
            count = 0
            with contextlib.suppress(errors.RateLimited):
                while count <= 2 * MANY:
                    await accepted_mail.accept((harness.ctx, other)[count % 2], harness.account_id, subject=f"{count}")
                    count += 1
            return count

        assert await burst() == MANY
        clock.pass_seconds(jump)
        # An hour ahead everybody has waited long enough; an hour back nobody has, and nobody waits for it either.
        assert await burst() == (MANY if jump > 0 else 0)
        gone = []
        for _ in range(MANY):
            clock.pass_seconds(1)
            gone.append(await burst())
        # After a jump backwards the process learns it first, and then the store.
        assert gone == ([1] * MANY if jump > 0 else [0] + [1] * (MANY - 1))


async def test_a_day_of_warm_up_is_given_once_however_often_midnight_comes(url: str) -> None:
    clock = contexts.Clock()
    clock.now = (clock.now // times.DAY + 1) * times.DAY - times.HOUR // 2
    tables = {"warmup": {"enabled": True, "recipients_per_day": list(CAPS)}}
    async with delivery_harness.open_harness(url, tables, clock=clock) as harness:

        async def fill() -> int:
            count = 0
            to = tuple(f"n{number}@example.net" for number in range(PART))
            with contextlib.suppress(errors.WarmupLimited):
                while count <= 2 * max(CAPS):
                    with contextlib.suppress(errors.RateLimited):
                        await accepted_mail.accept(harness.ctx, harness.account_id, to=to)
                        count += PART
                    clock.pass_seconds(1)
            return count

        given = [await fill()]
        for jump in (HOUR_SECONDS, -HOUR_SECONDS, HOUR_SECONDS):
            clock.pass_seconds(jump)
            given.append(await fill())
        assert given == [CAPS[0], CAPS[1], 0, 0]


@JUMPS
async def test_a_revocation_takes_effect_and_users_can_log_in(url: str, jump: int) -> None:
    clock = contexts.Clock()
    here = "192.0.2.1"
    async with (
        delivery_harness.open_harness(url, {}, clock=clock) as harness,
        delivery_harness.open_context(url, {}, clock=clock) as other,
    ):
        ctx, account_id = harness.ctx, harness.account_id
        credential, password = await credentials.create(ctx, account_id, "default")
        await users.create(
            ctx, account_id, email="owner@example.com", password=contexts.PASSWORD, role=callers.Role.OWNER
        )
        await authentication.authenticate_password(ctx, credential.username, password, client_address=here)
        for word in ("wrong", "wrong again"):
            with pytest.raises(errors.Unauthorized):
                await logins.log_in(ctx, "owner@example.com", word, client_address=here)
        session = await logins.log_in(ctx, "owner@example.com", contexts.PASSWORD, client_address=here)

        clock.pass_seconds(jump)
        # A token lives for an hour, and one from the future is nobody's: both log in anew, at once.
        with pytest.raises(errors.Unauthorized):
            await authentication.authenticate(ctx, f"Bearer {session.token}", client_address=here)
        session = await logins.log_in(ctx, "owner@example.com", contexts.PASSWORD, client_address=here)
        await authentication.authenticate(ctx, f"Bearer {session.token}", client_address=here)
        await authentication.authenticate_password(ctx, credential.username, password, client_address=here)
        await credentials.revoke(other, account_id, credential.id)
        clock.pass_seconds(1)
        with pytest.raises(errors.Unauthorized):
            await authentication.authenticate_password(ctx, credential.username, password, client_address=here)


async def test_a_moment_ago_is_not_an_hour_from_now(url: str) -> None:
    clock = contexts.Clock()
    async with delivery_harness.open_harness(url, {}, clock=clock) as harness:
        (domain,) = await domains.of_account(harness.ctx, harness.account_id)

        async def may_ask() -> bool:
            now = clock.now
            async with harness.ctx.store.transaction() as tx:
                return await stored_domains.mark_check_requested(
                    tx, harness.account_id, domain.id, now=now, not_since=now - times.SECOND
                )

        assert [await may_ask(), await may_ask()] == [True, False]
        clock.pass_seconds(-HOUR_SECONDS)
        assert [await may_ask(), await may_ask()] == [True, False]
