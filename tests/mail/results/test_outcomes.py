"""Results: recipient, queue, attempts, credits and message change together, and what is final stays as it is."""

from collections.abc import Sequence

import msgspec
import pytest

from postroad import context
from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.services.messages import lookup as messages
from postroad.services.operations import operator_jobs
from postroad.storage.mail import attempts, mail_counts, queue, suppressions
from postroad.storage.people import accounts as stored_accounts
from tests.contexts import Clock
from tests.services.claimed_mail import WORKER, accepted, claim_all, outcome


async def balances(ctx: context.Context, account_id: str) -> tuple[int, int]:
    async with ctx.store.reading() as tx:
        account = await stored_accounts.by_id(tx, account_id)
    assert account is not None
    return account.available, account.reserved


async def queued(ctx: context.Context) -> int:
    async with ctx.store.transaction() as tx:
        await queue.promote(tx, now=ctx.clock() + 10**12, limit=1000)
        return len(
            await queue.claim(
                tx,
                [queue.ClaimRequest(queue_key, 100) for queue_key in await queue.queue_keys(tx, after="", limit=100)],
                lease_until=0,
                worker="a look",
            )
        )


async def books_are_right(ctx: context.Context) -> None:
    assert (await operator_jobs.check_consistency(ctx)).findings == []


@pytest.mark.parametrize(
    "verdict, status, billing, message_status, left",
    [
        (disposition.Verdict.DELIVERED, "delivered", "settled", "delivered", (9, 0)),
        (disposition.Verdict.BOUNCED, "bounced", "released", "failed", (10, 0)),
        (disposition.Verdict.FAILED, "failed", "settled", "failed", (9, 0)),
    ],
)
async def test_a_final_result_ends_recipient_message_and_reservation(
    ctx: context.Context,
    account: stored_accounts.Account,
    clock: Clock,
    verdict: disposition.Verdict,
    status: str,
    billing: str,
    message_status: str,
    left: tuple[int, int],
) -> None:
    message_id, (claimed,) = await accepted(ctx, account.id, "ada@example.net")
    clock.pass_seconds(3)
    await ctx.outcome_commits.submit([outcome(ctx, claimed, verdict, code=599, response="word for word")])
    message, tried = await messages.find(ctx, account.id, message_id)
    (recipient,) = tried
    assert (recipient.status, recipient.billing_status) == (status, billing)
    assert (message.status, message.billing_status) == (message_status, billing)
    assert (recipient.attempt_count, recipient.last_smtp_code, recipient.last_smtp_response) == (
        1,
        599,
        "word for word",
    )
    assert recipient.delivered_at == (clock.now if status == "delivered" else None)
    assert recipient.bounced_at == (clock.now if status == "bounced" else None)
    assert await balances(ctx, account.id) == left
    async with ctx.store.reading() as tx:
        *_, entry = await stored_accounts.entries_from(tx, account.id, after="", limit=10)
    assert entry.kind == {"settled": "settle", "released": "release"}[billing]
    assert await queued(ctx) == 0
    await books_are_right(ctx)


@pytest.mark.parametrize(
    "status, tried, counted", [("canceled", False, (0, 0)), ("expired", False, (1, 0)), ("expired", True, (1, 1))]
)
async def test_who_was_canceled_or_has_expired_gets_the_credit_back(
    ctx: context.Context, account: stored_accounts.Account, *, status: str, tried: bool, counted: tuple[int, int]
) -> None:
    message_id, (first, second) = await accepted(ctx, account.id, "a@example.net", "b@example.net")
    ended = [
        msgspec.structs.replace(
            outcome(ctx, one, disposition.Verdict.FAILED, recipient_count=2, tried=tried),
            status=statuses.RecipientStatus(status),
        )
        for one in (first, second)
    ]
    await ctx.outcome_commits.submit(ended[:1])
    assert await balances(ctx, account.id) == (9, 1)
    await ctx.outcome_commits.submit(ended[1:])
    message, reached = await messages.find(ctx, account.id, message_id)
    assert (message.status, message.billing_status) == ("failed", "released")
    assert {(one.status, one.billing_status, one.attempt_count) for one in reached} == {(status, "released", tried)}
    assert await balances(ctx, account.id) == (10, 0)
    assert await queued(ctx) == 0
    # Charts count what expired as failed, and what was canceled not at all.
    async with ctx.store.reading() as tx:
        sums = await mail_counts.hourly_sums(tx, account.id, from_hour=0, until_hour=10**9, hours=10**9)
    assert sum(one.failed for one in sums) == 2 * counted[0]
    assert sum(one.failed for one in sums if one.provider) == 2 * counted[1]
    await books_are_right(ctx)


async def test_a_recipient_shows_a_thousand_characters_of_a_reply(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    message_id, (claimed,) = await accepted(ctx, account.id, "ada@example.net")
    await ctx.outcome_commits.submit([outcome(ctx, claimed, disposition.Verdict.BOUNCED, response="x" * 1_001)])
    _, (recipient,) = await messages.find(ctx, account.id, message_id)
    assert recipient.last_smtp_response == "x" * 1_000


async def test_a_retry_keeps_everything_open_and_waits(ctx: context.Context, account: stored_accounts.Account) -> None:
    message_id, (claimed,) = await accepted(ctx, account.id, "ada@example.net")
    await ctx.outcome_commits.submit([outcome(ctx, claimed, disposition.Verdict.RETRY, code=451, response="later")])
    message, tried = await messages.find(ctx, account.id, message_id)
    assert (message.status, tried[0].status) == ("queued", "deferred")
    assert tried[0].attempt_count == 1
    assert await balances(ctx, account.id) == (9, 1)
    assert await claim_all(ctx, WORKER) == []
    assert await queued(ctx) == 1
    await books_are_right(ctx)


@pytest.mark.parametrize(
    "verdicts, status, billing",
    [
        (("delivered", "delivered", "delivered"), "delivered", "settled"),
        (("delivered", "bounced", "failed"), "partial", "settled"),
        (("bounced", "bounced", "bounced"), "failed", "released"),
        (("bounced", "failed", "bounced"), "failed", "settled"),
    ],
)
@pytest.mark.parametrize("order", ["together", "one by one"])
@pytest.mark.parametrize("counted", [0, 3], ids=["unknown count", "known count"])
async def test_a_message_ends_with_its_last_recipient(
    ctx: context.Context,
    account: stored_accounts.Account,
    verdicts: Sequence[str],
    status: str,
    billing: str,
    order: str,
    counted: int,
) -> None:
    message_id, claimed = await accepted(ctx, account.id, "a@example.net", "b@example.net", "c@example.org")
    ended = [
        outcome(ctx, claim, disposition.Verdict(verdict), recipient_count=counted)
        for claim, verdict in zip(claimed, verdicts, strict=True)
    ]
    if order == "together":
        await ctx.outcome_commits.submit(ended)
    else:
        for position, one in enumerate(ended):
            assert (await messages.find(ctx, account.id, message_id))[0].status == "queued", position
            await ctx.outcome_commits.submit([one])
    found, _ = await messages.find(ctx, account.id, message_id)
    assert (found.status, found.billing_status) == (status, billing)
    await books_are_right(ctx)


async def test_a_final_state_never_changes(
    ctx: context.Context, account: stored_accounts.Account, clock: Clock
) -> None:
    message_id, (claimed,) = await accepted(ctx, account.id, "ada@example.net")
    await ctx.outcome_commits.submit([outcome(ctx, claimed, disposition.Verdict.DELIVERED)])
    before = await messages.find(ctx, account.id, message_id)
    for verdict in disposition.Verdict:
        clock.pass_seconds(1)
        await ctx.outcome_commits.submit([outcome(ctx, claimed, verdict, code=550, response="too late", worker="w2")])
    assert await messages.find(ctx, account.id, message_id) == before
    assert await queued(ctx) == 0
    async with ctx.store.reading() as tx:
        logged = await attempts.of_message(tx, account.id, message_id)
    assert [one.response for one in logged] == ["Ok", *["too late"] * 4]
    await books_are_right(ctx)


async def test_a_result_of_a_worker_without_its_lease_still_counts_when_it_is_the_first(
    ctx: context.Context, account: stored_accounts.Account, clock: Clock
) -> None:
    message_id, (claimed,) = await accepted(ctx, account.id, "ada@example.net")
    clock.pass_seconds(61)
    async with ctx.store.transaction() as tx:
        await queue.promote(tx, now=clock.now, limit=10)
    (again,) = await claim_all(ctx, "w2")
    assert again.lost_leases == 1
    await ctx.outcome_commits.submit([outcome(ctx, claimed, disposition.Verdict.DELIVERED)])
    await ctx.outcome_commits.submit([outcome(ctx, again, disposition.Verdict.RETRY, worker="w2")])
    assert (await messages.find(ctx, account.id, message_id))[0].status == "delivered"
    assert await queued(ctx) == 0
    await books_are_right(ctx)


async def test_a_retry_of_a_worker_without_its_lease_is_only_logged(
    ctx: context.Context, account: stored_accounts.Account, clock: Clock
) -> None:
    message_id, (claimed,) = await accepted(ctx, account.id, "ada@example.net")
    clock.pass_seconds(61)
    async with ctx.store.transaction() as tx:
        await queue.promote(tx, now=clock.now, limit=10)
    (again,) = await claim_all(ctx, "w2")
    await ctx.outcome_commits.submit([outcome(ctx, claimed, disposition.Verdict.RETRY, code=451, response="later")])
    (recipient,) = (await messages.find(ctx, account.id, message_id))[1]
    assert (recipient.status, recipient.attempt_count, recipient.last_smtp_code) == ("queued", 0, None)
    async with ctx.store.reading() as tx:
        (logged,) = await attempts.of_message(tx, account.id, message_id)
    assert logged.response == "later"
    clock.now += 1
    await ctx.outcome_commits.submit([outcome(ctx, again, disposition.Verdict.DELIVERED, worker="w2")])
    await books_are_right(ctx)


async def test_a_retry_that_is_recorded_twice_counts_once(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    message_id, (claimed,) = await accepted(ctx, account.id, "ada@example.net")
    reported = [outcome(ctx, claimed, disposition.Verdict.RETRY, code=451, response="later")]
    await ctx.outcome_commits.submit(reported)
    await ctx.outcome_commits.submit(reported)
    (recipient,) = (await messages.find(ctx, account.id, message_id))[1]
    assert (recipient.status, recipient.attempt_count) == ("deferred", 1)
    async with ctx.store.reading() as tx:
        assert len(await attempts.of_message(tx, account.id, message_id)) == 1
    await books_are_right(ctx)


async def test_a_decision_without_an_attempt_counts_none(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    message_id, (claimed,) = await accepted(ctx, account.id, "ada@example.net")
    ended = outcome(ctx, claimed, disposition.Verdict.BOUNCED, tried=False, code=None, response="suppressed")
    await ctx.outcome_commits.submit([ended])
    _, (recipient,) = await messages.find(ctx, account.id, message_id)
    assert (recipient.attempt_count, recipient.last_smtp_code, recipient.last_smtp_response) == (0, None, "suppressed")
    async with ctx.store.reading() as tx:
        assert await attempts.of_message(tx, account.id, message_id) == []


async def test_an_address_is_suppressed_with_the_reply_that_caused_it_and_only_by_an_outcome_that_says_so(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    message_id, (ada, bob) = await accepted(ctx, account.id, "Ada@Example.net", "bob@example.net")
    results = [
        outcome(ctx, ada, disposition.Verdict.BOUNCED, response="no such user", suppress=True),
        outcome(ctx, bob, disposition.Verdict.BOUNCED),
    ]
    await ctx.outcome_commits.submit(results)
    async with ctx.store.reading() as tx:
        (found,) = await suppressions.of_account(tx, account.id, after="", limit=10)
    assert (found.email_key, found.reason) == ("ada@example.net", "no such user")
    assert (found.message_id, found.source) == (message_id, "bounce")


async def test_the_attempt_log_says_when_where_and_what(ctx: context.Context, account: stored_accounts.Account) -> None:
    message_id, (claimed,) = await accepted(ctx, account.id, "ada@example.net")
    ended = outcome(ctx, claimed, disposition.Verdict.DELIVERED)
    await ctx.outcome_commits.submit([ended])
    async with ctx.store.reading() as tx:
        assert await attempts.of_message(tx, account.id, message_id) == [ended.attempt]
        assert await attempts.of_message(tx, "acc_other", message_id) == []
