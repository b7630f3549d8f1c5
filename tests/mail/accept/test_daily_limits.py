"""Limits of an account in the accepting transaction: the rate of its credentials, and recipients per day."""

import asyncio
import dataclasses

import msgspec
import pytest

from postroad import config, context, errors
from postroad.mail.accept import send_limits, transaction
from postroad.model.delivery import throttle
from postroad.roles import composition
from postroad.services.accounts import account_registry
from tests import accepted_mail, contexts
from tests.mail.accept import test_transaction as batches

NOW = batches.NOW  # at 08:00 UTC
HOURS_LEFT = 16


def decide(
    submissions: list[transaction.Submission], *, limit: int, used: int, credits: int = 100
) -> tuple[list[str], int]:
    """The decisions for a batch of an account with a daily limit, and what it has sent afterwards."""
    account = msgspec.structs.replace(batches.stored_account(available=credits), recipients_per_day=limit)
    books = transaction.GroupState({"acc_1": account}, {}, {}, {}, {"acc_1": used})
    words = batches.words(transaction.decide(submissions, books, policies=batches.POLICIES))
    return words, books.recipients_today["acc_1"]


def test_a_batch_is_decided_in_order_against_what_is_left_of_the_day() -> None:
    batch = [batches.submission(number, count=count) for number, count in enumerate((3, 2, 1, 1, 9))]
    assert decide(batch, limit=8, used=4) == (["accept", "rate_limited", "accept", "rate_limited", "forbidden"], 8)


def test_only_what_is_accepted_counts_and_no_test_mail() -> None:
    test = batches.submission(3)
    test = msgspec.structs.replace(test, message=msgspec.structs.replace(test.message, is_test=1))
    batch = [batches.submission(1, count=2), batches.submission(2), test]
    assert decide(batch, limit=2, used=1, credits=2) == (["rate_limited", "accept", "accept"], 2)


def test_the_error_says_what_was_used_and_when_the_next_day_begins() -> None:
    refused = send_limits.daily_refusal("this account", batches.submission(1).message, used=5, limit=5)
    assert isinstance(refused, errors.RateLimited)
    assert refused.retry_after == HOURS_LEFT * 3_600
    assert refused.message == (
        "this account has sent to 5 of its 5 recipients per day, and this message has 1; the next day begins at "
        "00:00 UTC"
    )


@pytest.mark.parametrize("rate, accepted", [(None, 2), (1, 1), (3, 3)])
def test_an_account_has_its_own_rate_and_a_burst_in_proportion(rate: int | None, accepted: int) -> None:
    account = msgspec.structs.replace(batches.stored_account(), request_rate=rate)
    books = transaction.GroupState({"acc_1": account}, {})
    policies = dataclasses.replace(batches.POLICIES, rate=throttle.RateLimit(rate=2, burst=2))
    batch = [batches.submission(number) for number in range(5)]
    words = batches.words(transaction.decide(batch, books, policies=policies))
    assert words == ["accept"] * accepted + ["rate_limited"] * (5 - accepted)


async def test_processes_together_accept_exactly_what_an_account_may_send_today(
    ctx: context.Context, settings: config.Settings, clock: contexts.Clock, sender: str
) -> None:
    await account_registry.change_limits(ctx, sender, request_rate=None, recipients_per_day=7)

    async def send(process: context.Context) -> str:
        try:
            await accepted_mail.accept(process, sender)
        except errors.RateLimited as refusal:
            return refusal.message
        return ""

    async with composition.open_context(settings, clock=clock) as other:
        answers = await asyncio.gather(*(send(process) for process in (ctx, other) for _ in range(10)))
        assert answers.count("") == 7
        clock.pass_seconds(24 * 3_600)
        assert await send(other) == ""
        await account_registry.change_limits(ctx, sender, request_rate=None, recipients_per_day=1)
        assert "has sent to 1 of its 1 recipients per day" in await send(other)
        await account_registry.change_limits(ctx, sender, request_rate=None, recipients_per_day=None)
        assert await send(other) == ""
