"""Warm-up on both engines: never a recipient over the cap, whoever sends, and figures that say how it stands."""

import asyncio
import contextlib

import msgspec
import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.mail.accept import send_limits
from postroad.model.units import times
from postroad.roles import composition
from postroad.services.domains import domain_registry as domains
from tests import accepted_mail, contexts

CAPS = (60, 100)
DAY_SECONDS = 24 * 3600
HOUR_SECONDS = 3600


@pytest.fixture
def settings(settings: config.Settings) -> config.Settings:
    """A schedule that a test can go through."""
    limits = msgspec.structs.replace(settings.limits, request_burst=1000)
    caps = msgspec.structs.replace(settings.warmup, enabled=True, recipients_per_day=CAPS)
    return msgspec.structs.replace(settings, warmup=caps, limits=limits)


@pytest_asyncio.fixture
async def shop(ctx: context.Context, account_id: str, clock: contexts.Clock) -> str:
    """An account whose domain is new, at noon."""
    clock.now = clock.now // times.DAY * times.DAY + times.DAY // 2
    await accepted_mail.allow_sending(ctx, account_id)
    return account_id


async def send(ctx: context.Context, account_id: str, count: int) -> str:
    to = tuple(f"person-{number}@example.net" for number in range(count))
    return await accepted_mail.accept(ctx, account_id, to=to)


async def look(ctx: context.Context, account_id: str) -> tuple[int, int | None, int | None]:
    domain = await domains.by_name(ctx, account_id, accepted_mail.DOMAIN)
    view = await domains.warmup_view(ctx, domain)
    assert view is not None
    return view.used, view.cap, view.tomorrow


async def test_a_message_that_does_not_fit_into_the_day_is_refused_as_a_whole_and_waits_as_announced(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    await send(ctx, shop, 50)
    clock.pass_seconds(0.3)
    with pytest.raises(errors.WarmupLimited) as refused:
        await send(ctx, shop, 11)
    assert refused.value.message == (
        "from: example.com is new and warms up: 50 of today's 60 recipients are used, and this message has 11; "
        "from 00:00 UTC the limit is 100; the operator can mark the domain as warm"
    )
    assert refused.value.retry_after == 12 * HOUR_SECONDS
    assert await look(ctx, shop) == (50, 60, 100)
    await send(ctx, shop, 10)
    assert await look(ctx, shop) == (60, 60, 100)
    clock.pass_seconds(refused.value.retry_after)
    await send(ctx, shop, 20)
    assert await look(ctx, shop) == (20, 100, 100)


async def test_a_domain_goes_through_its_days_and_is_free_then(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    await send(ctx, shop, 29)
    clock.pass_seconds(DAY_SECONDS)
    assert await look(ctx, shop) == (0, 60, 60)
    await send(ctx, shop, 30)
    clock.pass_seconds(DAY_SECONDS)
    await send(ctx, shop, 50)
    assert await look(ctx, shop) == (50, 100, None)
    await send(ctx, shop, 45)
    with pytest.raises(errors.WarmupLimited, match="from 00:00 UTC there is no limit"):
        await send(ctx, shop, 10)
    clock.pass_seconds(DAY_SECONDS)
    for _ in range(4):
        await send(ctx, shop, 50)
    assert await look(ctx, shop) == (0, None, None)
    ctx.access_cache.invalidate()
    assert (await send_limits.sending_domain(ctx, shop, accepted_mail.DOMAIN)).warm  # so that its mail asks no more
    await send(ctx, shop, 50)


async def test_a_clock_that_is_set_back_gives_no_second_day(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    for _ in range(2):
        await send(ctx, shop, 30)
    clock.pass_seconds(-DAY_SECONDS)
    for _ in range(2):  # the process and then the store find that their buckets are of another time
        with pytest.raises(errors.RateLimited):
            await send(ctx, shop, 1)
        clock.pass_seconds(1)
    with pytest.raises(errors.WarmupLimited):
        await send(ctx, shop, 1)
    clock.pass_seconds(DAY_SECONDS)
    with pytest.raises(errors.WarmupLimited):
        await send(ctx, shop, 1)


async def test_what_is_refused_uses_nothing(ctx: context.Context, account_id: str) -> None:
    await accepted_mail.allow_sending(ctx, account_id, amount=10)
    with pytest.raises(errors.InsufficientCredits):
        await send(ctx, account_id, 11)
    assert await look(ctx, account_id) == (0, 60, 60)


async def test_each_domain_and_each_account_has_its_own(ctx: context.Context, shop: str) -> None:
    await send(ctx, shop, 50)
    await domains.add(ctx, shop, "example.org", verified=True)
    to = tuple(f"person-{number}@example.net" for number in range(50))
    await accepted_mail.accept(ctx, shop, sender="shop@example.org", to=to)
    assert await look(ctx, shop) == (50, 60, 100)


async def test_a_warm_domain_is_free_from_the_operators_word_on(ctx: context.Context, shop: str) -> None:
    await send(ctx, shop, 50)
    domain = await domains.by_name(ctx, shop, accepted_mail.DOMAIN)
    assert (await domains.set_warm(ctx, shop, domain.id, warm=True)).warm
    for _ in range(3):
        await send(ctx, shop, 50)
    assert await domains.warmup_view(ctx, await domains.find(ctx, shop, domain.id)) is None
    assert not (await domains.set_warm(ctx, shop, domain.id, warm=False)).warm
    assert await look(ctx, shop) == (50, 60, 100)
    with pytest.raises(errors.WarmupLimited):
        await send(ctx, shop, 11)


async def test_adding_a_domain_again_gives_no_second_day(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    await send(ctx, shop, 50)
    for _ in range(2):
        domain = await domains.by_name(ctx, shop, accepted_mail.DOMAIN)
        await domains.remove(ctx, shop, domain.id)
        await domains.add(ctx, shop, accepted_mail.DOMAIN, verified=True)
    with pytest.raises(errors.WarmupLimited):
        await send(ctx, shop, 11)
    clock.pass_seconds(DAY_SECONDS)
    domain = await domains.by_name(ctx, shop, accepted_mail.DOMAIN)
    await domains.remove(ctx, shop, domain.id)
    await domains.add(ctx, shop, accepted_mail.DOMAIN, verified=True)
    assert await look(ctx, shop) == (0, 60, 60)


async def test_processes_that_send_at_once_stay_within_the_cap_together(
    ctx: context.Context, other_process: context.Context, shop: str
) -> None:
    counts = [7, 1, 13, 4, 9, 2, 8, 3] * 3

    async def attempt(place: int, count: int) -> int:
        with contextlib.suppress(errors.WarmupLimited):
            await send((ctx, other_process)[place % 2], shop, count)
            return count
        return 0

    taken = await asyncio.gather(*(attempt(place, count) for place, count in enumerate(counts)))
    accepted = sum(taken)
    assert await look(ctx, shop) == (accepted, 60, 100)
    assert accepted <= 60
    # What was refused did not fit, in whatever order they came.
    assert all(count > 60 - accepted for count, took in zip(counts, taken, strict=True) if not took)


async def test_nothing_is_shown_of_a_warm_domain_or_where_warm_up_is_off(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    domain = await domains.by_name(ctx, shop, accepted_mail.DOMAIN)
    off = msgspec.structs.replace(ctx.settings.warmup, enabled=False)
    async with composition.open_context(msgspec.structs.replace(ctx.settings, warmup=off), clock=clock) as free:
        for _ in range(2):
            await send(free, shop, 50)
        assert await domains.warmup_view(free, domain) is None
        assert await domains.warmup_calendar(free, domain) is None
    assert await look(ctx, shop) == (0, 60, 60)
    assert await domains.warmup_calendar(ctx, await domains.set_warm(ctx, shop, domain.id, warm=True)) is None


async def test_the_calendar_shows_what_is_done_today_and_ahead(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    async def calendar() -> list[tuple[int, int | None, int | None, str]] | None:
        found = await domains.warmup_calendar(ctx, await domains.by_name(ctx, shop, accepted_mail.DOMAIN))
        return None if found is None else [(day.cap, day.day, day.used, day.state) for day in found]

    today = times.day_of(clock.now)
    assert await calendar() == [(60, today, 0, "today"), (100, today + 1, None, "ahead")]
    await send(ctx, shop, 30)
    assert await calendar() == [(60, today, 30, "today"), (100, today + 1, None, "ahead")]
    clock.pass_seconds(DAY_SECONDS)
    assert await calendar() == [(60, None, None, "done"), (100, today + 1, 0, "today")]
    await send(ctx, shop, 50)
    clock.pass_seconds(DAY_SECONDS)
    assert await calendar() is None
