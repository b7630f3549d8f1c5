"""Limits of API keys in the accepting transaction: exact in a batch, and over several processes at once."""

import asyncio

import msgspec
import pytest

from postroad import config, context, errors
from postroad.mail.accept import send_limits as rules
from postroad.mail.accept import submit, transaction
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.people.callers import KeyBudget, KeyLimits, KeyUsage
from postroad.roles import composition
from postroad.services.people import api_keys, authentication, credentials
from tests import contexts
from tests.mail.accept import test_transaction as batches

NOW = 1_800_000_000_000_000  # at 08:00 UTC
DAY = NOW // (24 * 60 * 60 * 1_000_000)


def decide(
    submissions: list[transaction.Submission], budget: KeyBudget, *, credits: int = 100
) -> tuple[list[str], KeyUsage]:
    """The decisions for a batch of one key, and what it has used afterwards."""
    known = {"acc_1": batches.stored_account(available=credits)}
    books = transaction.GroupState(known, {}, {}, {"key_1": budget})
    counted = [msgspec.structs.replace(submission, api_key_id="key_1") for submission in submissions]
    words = batches.words(transaction.decide(counted, books, policies=batches.POLICIES))
    return words, books.budgets["key_1"].usage


def test_a_batch_is_decided_in_order_against_what_is_left_of_the_day() -> None:
    batch = [batches.submission(number, count=count) for number, count in enumerate((3, 2, 1, 1, 5))]
    words, usage = decide(batch, KeyBudget(4, None, KeyUsage(DAY, 0, 7)))
    assert words == ["accept", "rate_limited", "accept", "rate_limited", "forbidden"]
    assert usage == KeyUsage(DAY, 4, 11)


def test_a_batch_is_decided_in_order_against_what_is_left_of_the_budget() -> None:
    batch = [batches.submission(number, count=count) for number, count in enumerate((3, 2, 1, 1))]
    words, usage = decide(batch, KeyBudget(None, 14, KeyUsage(DAY - 9, 2, 10)))
    assert words == ["accept", "insufficient_credits", "accept", "insufficient_credits"]
    assert usage == KeyUsage(DAY, 4, 14)


def test_only_what_is_accepted_counts() -> None:
    batch = [batches.submission(1, count=2), batches.submission(2, count=1)]
    words, usage = decide(batch, KeyBudget(2, 2, KeyUsage()), credits=1)
    assert words == ["insufficient_credits", "accept"]
    assert usage == KeyUsage(DAY, 1, 1)


def test_mail_that_costs_nothing_uses_no_budget() -> None:
    free = msgspec.structs.replace(batches.submission(1).message, credits_reserved=0)
    assert rules.key_refusal(KeyBudget(None, 5, KeyUsage(DAY, 0, 5)), free) is None
    assert rules.count_for_key(KeyBudget(None, 5, KeyUsage(DAY, 0, 5)), free).usage == KeyUsage(DAY, 1, 5)


def test_a_key_without_a_row_sends_nothing() -> None:
    assert isinstance(rules.key_refusal(None, batches.submission(1).message), errors.Unauthorized)


@pytest.mark.parametrize(
    "limits, accepted",
    [
        (KeyLimits(credit_budget=7), 7),
        (KeyLimits(recipients_per_day=5), 5),
        (KeyLimits(recipients_per_day=7, credit_budget=6), 6),
        (KeyLimits(domains=("example.com",)), 20),
    ],
)
async def test_processes_together_accept_exactly_what_a_key_may_send(
    ctx: context.Context,
    settings: config.Settings,
    clock: contexts.Clock,
    sender: str,
    limits: KeyLimits,
    accepted: int,
) -> None:
    await credentials.create(ctx, sender, "main")
    _, secret = await api_keys.create(
        ctx, sender, credential_id=None, name="Shop", scopes=frozenset({"send"}), limits=limits
    )
    request = send_request.SendRequest(sender="shop@example.com", to="ada@example.net", subject="Hi", text="x")

    async def send(process: context.Context) -> bool:
        who = await authentication.authenticate(process, f"Bearer {secret}", client_address="192.0.2.1")
        try:
            await submit.submit(process, who, request, request_id="req_1", source=statuses.Source.API, key=None)
        except (errors.RateLimited, errors.InsufficientCredits):
            return False
        return True

    async with composition.open_context(settings, clock=clock) as other:
        answers = await asyncio.gather(*(send(process) for process in (ctx, other) for _ in range(10)))
    assert sum(answers) == accepted
    (key,) = await api_keys.of_account(ctx, sender)
    # Nothing is counted for a key without such a limit.
    assert key.usage == (KeyUsage(DAY, accepted, accepted) if limits.is_counted else None)
    assert key.limits == limits
    assert callers.usage_on_day(key.usage or KeyUsage(), now=NOW).credits == (accepted if limits.is_counted else 0)
