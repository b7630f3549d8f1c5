"""The accept transaction: each submission is decided in order; all accepted are stored, nothing of the refused."""

from typing import Any

import msgspec
import pytest

from postroad import context, errors
from postroad.mail.accept import transaction
from postroad.model.delivery import throttle
from postroad.model.domains import warmup
from postroad.services.accounts import credits as service_credits
from postroad.services.operations import operator_jobs
from postroad.storage.mail import messages
from postroad.storage.people import accounts

NOW = 1_800_000_000_000_000
DAY = 24 * 60 * 60 * 1_000_000
POLICIES = transaction.Policies(
    rate=throttle.RateLimit(rate=1000, burst=1000), warmup_caps=(200, 400), clock=lambda: NOW
)
BODY, OTHER_BODY = b"b" * 32, b"o" * 32


def submission(
    number: int,
    *,
    account: str = "acc_1",
    count: int = 1,
    key: str | None = None,
    body: bytes = BODY,
    credential: str = "cred_1",
    now: int = NOW,
) -> transaction.Submission:
    message = messages.NewMessage(
        id=f"em_{number}",
        account_id=account,
        credential_id=credential,
        source="api",
        sender="shop@example.com",
        sender_key="shop@example.com",
        subject="Hello",
        recipient_count=count,
        credits_reserved=count,
        size=4,
        request_id=f"req_{number}",
        response=f'{{"id":"em_{number}"}}'.encode(),
        created_at=now,
        mime=b"mime",
        tags=("welcome",),
    )
    people = [
        messages.NewRecipient(message.id, f"rcp_{number}_{index}", account, f"p{index}@example.org", f"p{index}", "d")
        for index in range(count)
    ]
    return transaction.Submission(
        message, people, f"led_{number}", transaction.Key(credential, key, body) if key is not None else None
    )


def stored_account(
    account_id: str = "acc_1", *, available: int = 10, status: str = accounts.ACTIVE, reason: str | None = None
) -> accounts.Account:
    return accounts.Account(account_id, "Shop", status, reason, available, reserved=0, created_at=NOW)


def decide(
    submissions: list[transaction.Submission],
    *known: accounts.Account,
    used: dict[Any, messages.StoredIdempotencyKey] | None = None,
) -> list[transaction.Decision]:
    """The decisions for a batch, where neither rates nor warm-up apply."""
    books = transaction.GroupState({account.id: account for account in known}, used or {})
    return transaction.decide(submissions, books, policies=POLICIES)


def words(decisions: list[transaction.Decision]) -> list[str]:
    """Each decision as one word: `accept`, `replay`, or the code of the refusal."""
    return [
        "accept" if one is None else one.code if isinstance(one, errors.PostroadError) else f"replay {one.message_id}"
        for one in decisions
    ]


def key(text: str, body: bytes = BODY, *, credential: str = "cred_1") -> tuple[Any, messages.StoredIdempotencyKey]:
    return (credential, text), messages.StoredIdempotencyKey(body, "em_first")


OPEN = stored_account()
SUSPENDED = stored_account(status=accounts.SUSPENDED, reason="too many bounces")
POOR = stored_account(available=2)
EMPTY = stored_account(available=0)

# what it shows: accounts, keys used before, submissions, decisions
TABLE: dict[
    str,
    tuple[
        list[accounts.Account], list[tuple[Any, messages.StoredIdempotencyKey]], list[transaction.Submission], list[str]
    ],
] = {
    "a lone one is accepted": ([OPEN], [], [submission(1)], ["accept"]),
    "one without a key is accepted as often as it comes": (
        [OPEN],
        [],
        [submission(1), submission(2)],
        ["accept", "accept"],
    ),
    "a used key with its body replays": ([OPEN], [key("k")], [submission(1, key="k")], ["replay em_first"]),
    "a used key with another body conflicts": (
        [OPEN],
        [key("k")],
        [submission(1, key="k", body=OTHER_BODY)],
        ["idempotency_conflict"],
    ),
    "a replay is answered for a suspended account": (
        [SUSPENDED],
        [key("k")],
        [submission(1, key="k")],
        ["replay em_first"],
    ),
    "a conflict wins over a suspension": (
        [SUSPENDED],
        [key("k")],
        [submission(1, key="k", body=OTHER_BODY)],
        ["idempotency_conflict"],
    ),
    "a replay costs nothing when nothing is left": (
        [EMPTY],
        [key("k")],
        [submission(1, key="k"), submission(2, key="k")],
        ["replay em_first", "replay em_first"],
    ),
    "a conflict wins over missing credits": (
        [EMPTY],
        [key("k")],
        [submission(1, key="k", body=OTHER_BODY)],
        ["idempotency_conflict"],
    ),
    "a replay is answered even when the account is gone": (
        [],
        [key("k")],
        [submission(1, key="k")],
        ["replay em_first"],
    ),
    "a missing account is unauthorized": ([], [], [submission(1, key="k")], ["unauthorized"]),
    "a suspended account is told so before its credits": (
        [stored_account(status=accounts.SUSPENDED, available=0)],
        [],
        [submission(1, key="k")],
        ["account_suspended"],
    ),
    "the second of one key in a batch has to wait": (
        [OPEN],
        [],
        [submission(1, key="k"), submission(2, key="k")],
        ["accept", "idempotency_in_progress"],
    ),
    "also with another body": (
        [OPEN],
        [],
        [submission(1, key="k"), submission(2, key="k", body=OTHER_BODY)],
        ["accept", "idempotency_in_progress"],
    ),
    "a key that was refused is free for the next in the batch": (
        [POOR],
        [],
        [submission(1, key="k", count=3), submission(2, key="k", count=2, body=OTHER_BODY)],
        ["insufficient_credits", "accept"],
    ),
    "keys of two credentials do not meet": (
        [OPEN],
        [key("k")],
        [submission(1, key="k", credential="cred_2", body=OTHER_BODY), submission(2, key="k", credential="cred_3")],
        ["accept", "accept"],
    ),
    "credits run out in the middle of a batch": (
        [POOR],
        [],
        [submission(1), submission(2, count=2), submission(3), submission(4)],
        ["accept", "insufficient_credits", "accept", "insufficient_credits"],
    ),
    "exactly enough is enough": ([POOR], [], [submission(1, count=2)], ["accept"]),
    "one credit too few is too few": ([POOR], [], [submission(1, count=3)], ["insufficient_credits"]),
    "each account has its own credits and its own state": (
        [
            stored_account("acc_1", available=1),
            stored_account("acc_2", available=1),
            stored_account("acc_3", status=accounts.SUSPENDED),
        ],
        [],
        [
            submission(1, account="acc_1"),
            submission(2, account="acc_2"),
            submission(3, account="acc_1"),
            submission(4, account="acc_3"),
            submission(5, account="acc_4"),
        ],
        ["accept", "accept", "insufficient_credits", "account_suspended", "unauthorized"],
    ),
    "a refusal in between disturbs nobody": (
        [OPEN],
        [key("used")],
        [
            submission(1, key="a"),
            submission(2, key="used", body=OTHER_BODY),
            submission(3, key="used"),
            submission(4, count=99),
            submission(5, key="b"),
        ],
        ["accept", "idempotency_conflict", "replay em_first", "insufficient_credits", "accept"],
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_a_batch_is_decided_in_order(case: str) -> None:
    known, used, submissions, expected = TABLE[case]
    assert words(decide(submissions, *known, used=dict(used))) == expected


def test_a_refusal_for_credits_has_both_figures() -> None:
    (refused,) = decide([submission(1, count=3)], POOR)
    assert isinstance(refused, errors.InsufficientCredits)
    assert "needs 3 credits" in refused.message
    assert "2 are available" in refused.message


def test_a_refusal_for_a_suspension_has_the_reason() -> None:
    (refused,) = decide([submission(1)], SUSPENDED)
    assert isinstance(refused, errors.AccountSuspended)
    assert refused.message == "the account is suspended: too many bounces"
    assert transaction.suspended(None).message == "the account is suspended: contact the operator"


# Rates and warm-up


POLICIES_OF_A_YOUNG_DOMAIN = transaction.Policies(rate=POLICIES.rate, warmup_caps=(50, 100), clock=lambda: NOW)
TIGHT = transaction.Policies(rate=throttle.RateLimit(rate=1, burst=2), warmup_caps=(50, 100), clock=lambda: NOW)


def warming(number: int, **changes: Any) -> transaction.Submission:
    return msgspec.structs.replace(submission(number, **changes), warmup_domain="example.com")


def test_the_rate_is_checked_after_key_and_suspension_and_before_all_else() -> None:
    books = transaction.GroupState(
        {
            "acc_1": POOR,
            "acc_2": stored_account("acc_2", status=accounts.SUSPENDED),
            "acc_3": stored_account("acc_3"),
        },
        dict([key("used")]),
    )
    decisions = transaction.decide(
        [
            submission(1, key="used"),
            submission(2, account="acc_2"),
            warming(3, count=51),
            submission(4, count=3),
            warming(5, count=51),
            submission(6, account="acc_3", key="b"),
            submission(7, account="acc_3", key="b"),
            submission(8, account="acc_3", key="c"),
        ],
        books,
        policies=TIGHT,
    )
    assert words(decisions) == [
        "replay em_first",
        "account_suspended",
        "warmup_limited",
        "insufficient_credits",
        "rate_limited",
        "accept",
        "idempotency_in_progress",
        "accept",
    ]
    # Neither the replay nor the suspended nor the second of a key has taken anything.
    assert {scope: bucket.full_at for scope, bucket in books.buckets.items()} == {
        "acc_1": NOW + 2_000_000,
        "acc_3": NOW + 2_000_000,
    }


def test_only_what_is_accepted_counts_for_the_warm_up() -> None:
    books = transaction.GroupState({"acc_1": stored_account(available=49)}, {})
    batch = [warming(1, count=50), warming(2, count=30), warming(3, count=21), warming(4, count=19), submission(5)]
    decisions = transaction.decide(batch, books, policies=POLICIES_OF_A_YOUNG_DOMAIN)
    assert words(decisions) == ["insufficient_credits", "accept", "warmup_limited", "accept", "insufficient_credits"]
    assert books.warmups == {("acc_1", "example.com"): warmup.State(NOW // DAY, 0, 49)}


# The transaction itself, on both engines


async def accept(
    ctx: context.Context, *submissions: transaction.Submission
) -> list[transaction.Accepted | errors.PostroadError]:
    async with ctx.store.transaction() as tx:
        answers = await transaction.store_entries(tx, submissions, policies=POLICIES, outbox=ctx.outbox)
    return [answer for answer in answers if not isinstance(answer, transaction.Counted)]


async def balance(ctx: context.Context, account_id: str) -> tuple[int, int]:
    async with ctx.store.reading() as tx:
        account = await accounts.by_id(tx, account_id)
    assert account is not None
    return account.available, account.reserved


async def counts(ctx: context.Context) -> tuple[int, int, int, int]:
    """Messages, recipients, ledger entries and keys; the store must be consistent."""
    report = await operator_jobs.check_consistency(ctx)
    assert report.findings == []
    found = report.counts
    return found.messages, found.recipients, found.ledger_entries, found.idempotency_keys


async def test_everything_of_an_accepted_message_is_stored(ctx: context.Context, account: accounts.Account) -> None:
    await service_credits.add(ctx, account.id, 10, None)
    (answer,) = await accept(ctx, submission(1, account=account.id, count=3, key="k"))
    assert isinstance(answer, transaction.Accepted)
    assert answer == transaction.Accepted("em_1", "req_1", b'{"id":"em_1"}', replayed=False, full_at=answer.full_at)
    assert await balance(ctx, account.id) == (7, 3)
    assert await counts(ctx) == (1, 3, 2, 1)
    async with ctx.store.reading() as tx:
        message = await messages.by_id(tx, account.id, "em_1")
        assert message is not None
        assert (message.status, message.billing_status, message.credits_reserved) == ("queued", "reserved", 3)
        assert await messages.body(tx, account.id, "em_1") == b"mime"
        people = await messages.recipients(tx, account.id, "em_1")
    assert [(one.status, one.billing_status, one.attempt_count) for one in people] == 3 * [("queued", "reserved", 0)]


async def test_a_batch_stores_the_accepted_and_nothing_of_the_others(
    ctx: context.Context, account: accounts.Account
) -> None:
    await service_credits.add(ctx, account.id, 4, None)
    answers = await accept(
        ctx,
        submission(1, account=account.id, count=2, key="a"),
        submission(2, account=account.id, count=3, key="b"),
        submission(3, account=account.id, count=2, key="a"),
        submission(4, account=account.id, count=2, key="c"),
        submission(5, account="acc_nobody", key="d"),
    )
    assert [answer.code if isinstance(answer, errors.PostroadError) else answer.message_id for answer in answers] == [
        "em_1",
        "insufficient_credits",
        "idempotency_in_progress",
        "em_4",
        "unauthorized",
    ]
    assert await balance(ctx, account.id) == (0, 4)
    assert await counts(ctx) == (2, 4, 3, 2)


async def test_a_later_batch_replays_byte_for_byte(ctx: context.Context, account: accounts.Account) -> None:
    await service_credits.add(ctx, account.id, 10, None)
    await accept(ctx, submission(1, account=account.id, key="k"))
    before = await counts(ctx)
    again, other = await accept(
        ctx,
        submission(2, account=account.id, key="k", now=NOW + DAY - 1),
        submission(3, account=account.id, key="k", body=OTHER_BODY, now=NOW + DAY - 1),
    )
    assert isinstance(again, transaction.Accepted)
    assert again == transaction.Accepted("em_1", "req_1", b'{"id":"em_1"}', replayed=True, full_at=again.full_at)
    assert isinstance(other, errors.IdempotencyConflict)
    assert await counts(ctx) == before
    assert await balance(ctx, account.id) == (9, 1)


async def test_an_expired_key_gives_way_and_lives_a_new_day(ctx: context.Context, account: accounts.Account) -> None:
    await service_credits.add(ctx, account.id, 10, None)
    await accept(ctx, submission(1, account=account.id, key="k"))
    (second,) = await accept(ctx, submission(2, account=account.id, key="k", body=OTHER_BODY, now=NOW + DAY))
    assert isinstance(second, transaction.Accepted)
    assert (second.message_id, second.replayed) == ("em_2", False)
    assert await counts(ctx) == (2, 2, 3, 1)
    replayed, conflicting = await accept(
        ctx,
        submission(3, account=account.id, key="k", body=OTHER_BODY, now=NOW + 2 * DAY - 1),
        submission(4, account=account.id, key="k", now=NOW + 2 * DAY - 1),
    )
    assert isinstance(replayed, transaction.Accepted)
    assert (replayed.message_id, replayed.replayed) == ("em_2", True)
    assert isinstance(conflicting, errors.IdempotencyConflict)


async def test_a_key_that_expired_for_the_latest_of_a_batch_is_not_replayed(
    ctx: context.Context, account: accounts.Account
) -> None:
    await service_credits.add(ctx, account.id, 10, None)
    await accept(ctx, submission(1, account=account.id, key="k"))
    earlier, later = await accept(
        ctx,
        submission(2, account=account.id, now=NOW + DAY - 1),
        submission(3, account=account.id, key="k", now=NOW + DAY),
    )
    assert isinstance(earlier, transaction.Accepted)
    assert isinstance(later, transaction.Accepted)
    assert (later.message_id, later.replayed) == ("em_3", False)


async def test_a_transaction_that_fails_leaves_nothing(ctx: context.Context, account: accounts.Account) -> None:
    await service_credits.add(ctx, account.id, 10, None)
    with pytest.raises(Exception, match=r"(?i)unique"):  # each engine has its own kind
        await accept(ctx, submission(1, account=account.id, key="k"), submission(1, account=account.id))
    assert await counts(ctx) == (0, 0, 1, 0)
    assert await balance(ctx, account.id) == (10, 0)


async def test_a_key_whose_message_has_gone_is_loud(ctx: context.Context, account: accounts.Account) -> None:
    async with ctx.store.reading() as tx:
        with pytest.raises(LookupError, match="em_gone"):
            await transaction.replay(tx, account.id, messages.StoredIdempotencyKey(BODY, "em_gone"))
