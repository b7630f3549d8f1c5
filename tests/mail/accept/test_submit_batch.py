"""Batches, on both engines: a result for each item in order, one key, one transaction, and the checks of every send."""

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.mail.accept import compose, rendering, submit_batch, transaction, writer_protocol
from postroad.model.delivery import throttle
from postroad.model.mail import send_request
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import lookup as messages
from postroad.services.operations import operator_jobs
from postroad.services.templates import templates
from postroad.storage.mail import messages as idempotency
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail
from tests.contexts import Clock
from tests.mail.accept import test_transaction as batches

EMAIL: dict[str, Any] = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Hello", "text": "Hi"}
FOREIGN = {**EMAIL, "from": "shop@example.net"}
WRONG = {**EMAIL, "to": "nobody"}
WELCOME: dict[str, Any] = {"from": "shop@example.com", "template": "welcome"}


@dataclasses.dataclass(slots=True)
class Shop:
    """An account that may send."""

    ctx: context.Context
    account_id: str
    who: callers.Caller
    requests: int = 0

    async def batch(self, key: str = "k", **body: object) -> transaction.Accepted:
        self.requests += 1
        request = msgspec.convert(body, send_request.BatchRequest)
        return await submit_batch.submit_batch(self.ctx, self.who, request, request_id=f"req_{self.requests}", key=key)

    async def emails(self, *emails: dict[str, Any], key: str = "k", **more: object) -> list[str]:
        return results(await self.batch(key, emails=emails, **more))

    async def refusal(self, key: str = "k", **body: object) -> errors.PostroadError:
        """Why the batch is refused; nothing of it is left then."""
        before = await self.state()
        with pytest.raises(errors.PostroadError) as refused:
            await self.batch(key, **body)
        assert await self.state() == before
        return refused.value

    async def state(self) -> tuple[int, int, list[str]]:
        """The balance and the messages; the store is consistent."""
        assert (await operator_jobs.check_consistency(self.ctx)).findings == []
        assert self.ctx.in_flight == set()
        account = await accounts.find(self.ctx, self.account_id)
        page = await messages.page(self.ctx, self.account_id, messages.Filters(), limit=999, cursor=None)
        return account.available, account.reserved, [message.id for message in reversed(page.messages)]


def results(accepted: transaction.Accepted) -> list[str]:
    """The ids, and the codes of errors."""
    found = msgspec.json.decode(accepted.response, type=send_request.BatchReceipt)
    assert found.request_id == accepted.request_id
    return [one.id if isinstance(one.id, str) else one.error.code for one in found.results]  # type: ignore[union-attr]


@pytest_asyncio.fixture
async def shop(ctx: context.Context, account: stored_accounts.Account) -> Shop:
    await credits.add(ctx, account.id, 10, None)
    await domains.add(ctx, account.id, "example.com", verified=True)
    await templates.put(ctx, account.id, "welcome", subject="Welcome {{name}}", text="Hi {{name}}", html=None)
    return Shop(ctx, account.id, accepted_mail.caller_of(account.id))


async def test_each_item_has_its_result_in_order(shop: Shop) -> None:
    accepted = await shop.batch(emails=[EMAIL, WRONG, {**EMAIL, "cc": "bob@example.net"}, FOREIGN, EMAIL])
    one, wrong, three, foreign, five = results(accepted)
    assert (wrong, foreign) == ("invalid_request", "forbidden")
    assert accepted.response.count(b'"message":"to: \'nobody\' is not an email address') == 1
    assert await shop.state() == (6, 4, [one, three, five])
    assert (accepted.message_id, accepted.replayed, accepted.refused) == (one, False, ("invalid_request", "forbidden"))
    shown = await messages.details(shop.ctx, shop.account_id, three)
    assert (shown.receipt.id, shown.receipt.cc, shown.message.request_id) == (three, ("bob@example.net",), "req_1")
    counted = shop.ctx.metrics
    assert counted.accepted.values == {("api",): 3}
    assert counted.refused.values == {("api", "invalid_request"): 1, ("api", "forbidden"): 1}


async def test_a_template_is_a_message_for_each_recipient(shop: Shop) -> None:
    people = [
        {"to": "Ada <ada@example.net>", "variables": {"name": "Ada"}, "metadata": {"customer": "1"}},
        {"to": "bob@example.net"},
        {"to": "eve@example.net", "variables": {"name": "Eve"}},
    ]
    replies = ("a@example.com", "b@example.com")
    common = {**WELCOME, "tags": ["new"], "reply_to": replies, "metadata": {"customer": "0", "run": "7"}}
    ada, bob, eve = results(await shop.batch(**common, recipients=people))
    assert bob == "invalid_request"
    for message_id, name, customer in ((ada, "Ada", "1"), (eve, "Eve", "0")):
        shown = await messages.details(shop.ctx, shop.account_id, message_id)
        assert (shown.receipt.subject, len(shown.recipients), shown.receipt.tags) == (f"Welcome {name}", 1, ("new",))
        assert shown.receipt.metadata == {"customer": customer, "run": "7"}
        assert shown.receipt.reply_to == replies
        assert f"Hi {name}".encode() in await messages.raw(shop.ctx, shop.account_id, message_id)


async def test_500_recipients_pass(shop: Shop) -> None:
    await credits.add(shop.ctx, shop.account_id, 990, None)
    shop.ctx.rate_limiter.policy = throttle.RateLimit(rate=1000, burst=500)
    people = [{"to": f"p{number}@example.net", "variables": {"name": str(number)}} for number in range(500)]
    ids = results(await shop.batch(**WELCOME, recipients=people))
    assert await shop.state() == (500, 500, ids)


async def test_a_mixture_of_the_forms_is_refused(shop: Shop) -> None:
    one: dict[str, Any] = {"recipients": [{"to": "a@example.net"}]}
    mixtures: list[tuple[dict[str, Any], str]] = [
        ({}, "body: give either emails, or recipients with template"),
        ({"emails": [EMAIL], **one}, "body: give either emails, or recipients"),
        ({"emails": [EMAIL], "tags": ["x"]}, "tags: not allowed beside emails"),
        ({"emails": [EMAIL], "from": "shop@example.com"}, "from: not allowed beside emails"),
        ({**one, "from": "shop@example.com"}, "template: required with recipients"),
        ({**one, "template": "welcome"}, "from: required with recipients"),
    ]
    for body, said in mixtures:
        refusal = await shop.refusal(**body)
        assert (refusal.code, refusal.message[: len(said)]) == ("invalid_request", said)


@pytest.mark.parametrize("body", [{"emails": []}, {"emails": [EMAIL] * 101}, {"recipients": [{"to": "a"}] * 501}])
def test_there_are_1_to_100_emails_or_500_recipients(body: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match="length"):
        msgspec.convert(WELCOME | body, send_request.BatchRequest)


def test_options_of_a_single_send_are_options_of_a_batch() -> None:
    own = {"to", "cc", "bcc", "text", "html", "variables"}
    assert not own & send_request.BATCH_COMMON.keys()
    assert {
        "sender",
        "subject",
        "reply_to",
        "template",
        "headers",
        "tags",
        "metadata",
    } <= send_request.BATCH_COMMON.keys()


async def test_a_repeated_key_gets_the_same_bytes_and_stores_nothing(shop: Shop, clock: Clock) -> None:
    first = await shop.batch(emails=[EMAIL, WRONG])
    before = await shop.state()
    # Whatever the later checks would say now.
    shop.ctx.rate_limiter.policy = throttle.RateLimit(rate=1, burst=1)
    for _ in range(3):
        again = await shop.batch(emails=[{**EMAIL, "cc": []}, WRONG])
        same = msgspec.structs.replace(first, replayed=True, full_at=again.full_at, refused=again.refused)
        assert again == same
    assert await shop.state() == before
    assert shop.ctx.metrics.replayed.values == {("api",): 3}
    clock.pass_seconds(24 * 3600)
    assert not (await shop.batch(emails=[EMAIL, WRONG])).replayed


@pytest.mark.parametrize(
    "body", [{"emails": [EMAIL]}, {"emails": [WRONG, EMAIL]}, {"emails": [EMAIL, WRONG], "all_or_nothing": True}]
)
async def test_a_repeated_key_with_another_body_conflicts(shop: Shop, body: dict[str, Any]) -> None:
    await shop.emails(EMAIL, WRONG)
    assert (await shop.refusal(**body)).code == "idempotency_conflict"


async def test_single_sends_and_batches_share_their_keys(shop: Shop) -> None:
    await accepted_mail.accept(shop.ctx, shop.account_id, key="single")
    assert (await shop.refusal("single", emails=[EMAIL])).code == "idempotency_conflict"
    assert (await shop.refusal("single", emails=[WRONG])).code == "idempotency_conflict"
    await shop.emails(EMAIL, key="batch")
    with pytest.raises(errors.IdempotencyConflict):
        await accepted_mail.accept(shop.ctx, shop.account_id, key="batch")


async def test_a_batch_of_which_nothing_is_accepted_stores_nothing_and_leaves_its_key(shop: Shop) -> None:
    before = await shop.state()
    assert await shop.emails(WRONG, FOREIGN) == ["invalid_request", "forbidden"]
    assert await shop.state() == before
    (accepted,) = await shop.emails(EMAIL)
    assert (await shop.state())[2] == [accepted]


async def test_all_or_nothing_is_refused_with_the_first_item_that_fails(shop: Shop) -> None:
    lost = {**WELCOME, "template": "lost", "to": "a@example.net"}
    dear = {**EMAIL, "to": [f"p{number}@example.net" for number in range(8)]}
    poor = "emails[3]: the message needs 8 credits, one for each unique recipient, but only 7 are available"
    refused: list[tuple[dict[str, Any], str, str]] = [
        ({"emails": [EMAIL, WRONG, FOREIGN]}, "invalid_request", "emails[1]: to: 'nobody' is not"),
        ({"emails": [EMAIL, FOREIGN]}, "forbidden", "emails[1]: from: example.net is not a domain"),
        ({"emails": [EMAIL, lost]}, "invalid_request", "emails[1]: template"),
        ({"emails": [EMAIL, EMAIL, EMAIL, dear]}, "insufficient_credits", poor),
        ({**WELCOME, "recipients": [{"to": "a@example.net"}]}, "invalid_request", "recipients[0]: "),
    ]
    for body, code, said in refused:
        refusal = await shop.refusal(**body, all_or_nothing=True)
        assert (refusal.code, refusal.message[: len(said)]) == (code, said)
        # The key is not used up, and the rate is not taken.
    assert len(await shop.emails(EMAIL, EMAIL, all_or_nothing=True)) == 2


async def test_items_are_charged_until_credits_run_out(shop: Shop) -> None:
    eight = {**EMAIL, "to": [f"p{number}@example.net" for number in range(8)]}
    first, poor, third = await shop.emails(eight, eight, EMAIL)
    assert poor == "insufficient_credits"
    assert await shop.state() == (1, 9, [first, third])


async def test_items_count_towards_the_rate(shop: Shop, clock: Clock) -> None:
    shop.ctx.rate_limiter.policy = throttle.RateLimit(rate=1, burst=3)
    accepted = await shop.batch(emails=[EMAIL] * 5)
    assert results(accepted)[3:] == ["rate_limited", "rate_limited"]
    # The key of this batch gets this response again, which has no `Retry-After`.
    said = b"from this account; send it again in another batch, with a new key, after 1 s"
    assert accepted.response.count(said) == 2
    refusal = await shop.refusal("l", emails=[EMAIL])
    assert (refusal.code, refusal.retry_after) == ("rate_limited", 1)
    clock.pass_seconds(2)
    refusal = await shop.refusal("m", emails=[EMAIL] * 3, all_or_nothing=True)
    assert (refusal.code, refusal.message[:11]) == ("rate_limited", "emails[2]: ")
    clock.pass_seconds(1)
    assert len(await shop.emails(*[EMAIL] * 3, key="m", all_or_nothing=True)) == 3


async def test_items_beyond_the_rate_are_not_composed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    composed = []
    real = compose.compose

    def counting(*arguments: Any) -> transaction.Submission:
        composed.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(compose, "compose", counting)
    shop.ctx.rate_limiter.policy = throttle.RateLimit(rate=1, burst=3)
    assert (await shop.emails(*[EMAIL] * 100))[3:] == ["rate_limited"] * 97
    assert len(composed) == 3


async def test_all_or_nothing_over_the_rate_is_not_composed_and_names_wrong_fields_first(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def composed(*_: object) -> None:
        raise AssertionError

    shop.ctx.rate_limiter.policy = throttle.RateLimit(rate=1, burst=3)
    monkeypatch.setattr(compose, "compose", composed)
    over = await shop.refusal("a", emails=[EMAIL] * 4, all_or_nothing=True)
    assert (over.code, over.message[:11]) == ("rate_limited", "emails[3]: ")
    wrong = await shop.refusal("b", emails=[*[EMAIL] * 3, WRONG], all_or_nothing=True)
    assert (wrong.code, wrong.message[:11]) == ("invalid_request", "emails[3]: ")


async def test_refused_items_count_towards_the_rate_too(shop: Shop, clock: Clock) -> None:
    shop.ctx.rate_limiter.policy = throttle.RateLimit(rate=1, burst=10)

    def left() -> str:
        return dict(shop.ctx.rate_limiter.headers(shop.account_id, now=clock()))["RateLimit"].split(";")[1]

    assert await shop.emails(*[FOREIGN] * 3) == ["forbidden"] * 3
    assert left() == "r=7"
    # Of a mixed batch those that are accepted count first.
    assert (await shop.emails(EMAIL, FOREIGN, WRONG))[1:] == ["forbidden", "invalid_request"]
    assert left() == "r=4"
    assert (await shop.refusal("a", emails=[FOREIGN, FOREIGN, EMAIL], all_or_nothing=True)).code == "forbidden"
    # Of all or nothing, each was worked on.
    assert left() == "r=1"
    # The rate comes before the sender domain.
    assert await shop.emails(*[FOREIGN] * 5, key="b") == ["forbidden"] + ["rate_limited"] * 4
    assert left() == "r=0"
    assert (await shop.refusal("c", emails=[FOREIGN])).code == "rate_limited"


async def test_a_refusal_that_cannot_be_counted_is_still_the_answer(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store cannot be written, and nothing of this would be."""

    def unwritable(*_: object, **__: object) -> None:
        raise errors.ServiceUnavailable("the disk is full; try again later", retry_after=30)

    monkeypatch.setattr(shop.ctx.accept_commits, "start", unwritable)
    with pytest.raises(errors.Forbidden):
        await accepted_mail.accept(shop.ctx, shop.account_id, sender="shop@example.net")
    assert await shop.emails(FOREIGN) == ["forbidden"]
    with pytest.raises(errors.ServiceUnavailable):
        await accepted_mail.accept(shop.ctx, shop.account_id)


async def test_a_suspended_account_gets_that_error_for_the_whole_batch(shop: Shop) -> None:
    await accounts.suspend(shop.ctx, shop.account_id, "too many bounces")
    for email in (EMAIL, WRONG):
        assert (await shop.refusal(emails=[email])).code == "account_suspended"


async def test_a_batch_is_at_most_32_mib_in_all(shop: Shop) -> None:
    file = {"filename": "a.txt", "content": "eHh4" * 100_000}
    people = [{"to": f"p{number}@example.net", "variables": {"name": "x"}} for number in range(100)]
    refusal = await shop.refusal(**WELCOME, attachments=[file], recipients=people)
    assert (refusal.code, refusal.status) == ("payload_too_large", 413)
    # A template can make much of little.
    await templates.put(shop.ctx, shop.account_id, "welcome", subject="x", text="{{name}}" * 10_000, html=None)
    people = [{"to": f"p{number}@example.net", "variables": {"name": "x" * 100}} for number in range(50)]
    assert (await shop.refusal(**WELCOME, recipients=people)).code == "payload_too_large"


async def test_metadata_counts_as_often_as_it_is_stored(shop: Shop) -> None:
    shop.ctx.rate_limiter.policy = throttle.RateLimit(rate=100, burst=500)
    # JSON makes six octets of each, in the message and in its response: 60 MB of a request of 20 KB.
    metadata = {f"k{number}": "\x01" * 500 for number in range(20)}
    people = [{"to": f"p{number}@example.net", "variables": {"name": "x"}} for number in range(500)]
    refusal = await shop.refusal(**WELCOME, metadata=metadata, recipients=people)
    assert (refusal.code, refusal.status) == ("payload_too_large", 413)


async def test_the_largest_batch_fits_into_a_frame(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[transaction.Batch] = []

    async def commit(made: transaction.Batch, **_: object) -> transaction.Accepted:
        sent.append(made)
        return transaction.Accepted("em_1", "req_1", b"{}", replayed=False)

    monkeypatch.setattr(shop.ctx.accept_commits, "start", commit)
    shop.ctx.rate_limiter.policy = throttle.RateLimit(rate=100, burst=500)
    metadata = {f"k{number}": "\x01" * 500 for number in range(20)}
    people = [{"to": f"p{number}@example.net", "variables": {"name": "x"}} for number in range(250)]
    await shop.batch(**WELCOME, metadata=metadata, recipients=people)
    (made,) = sent
    assert 24 * 2**20 < made.size < 32 * 2**20
    assert len(msgspec.msgpack.encode([writer_protocol.SubmitBatch(1, made)])) < 33 * 2**20


async def test_entries_of_a_group_share_the_credits_of_their_account(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[transaction.Batch] = []

    async def commit(entry: transaction.Batch, **_: object) -> transaction.Accepted:
        made.append(entry)
        return transaction.Accepted("em_1", "req_1", b"{}", replayed=False)

    with monkeypatch.context() as patched:
        patched.setattr(shop.ctx.accept_commits, "start", commit)
        for number in range(3):
            await shop.batch(str(number), emails=[{**EMAIL, "to": [f"p{at}@example.net" for at in range(4)]}])
    (single,) = made[0].submissions
    entries: list[transaction.Entry] = [made[1], single, made[2]]
    async with shop.ctx.store.transaction() as tx:
        answers = await transaction.store_entries(tx, entries, policies=batches.POLICIES, outbox=shop.ctx.outbox)
    assert [getattr(answer, "refused", None) for answer in answers] == [(), (), ("insufficient_credits",)]
    assert (await shop.state())[:2] == (2, 8)


async def test_batches_of_a_group_lock_their_accounts_as_others_do(
    shop: Shop, settings: config.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await accounts.create(shop.ctx, "Other shop")
    await credits.add(shop.ctx, other.id, 10, None)
    await domains.add(shop.ctx, other.id, "example.org", verified=True)
    last, first = sorted(
        (shop, Shop(shop.ctx, other.id, accepted_mail.caller_of(other.id))), key=lambda one: one.account_id
    )[::-1]
    made: list[transaction.Batch] = []

    async def commit(entry: transaction.Batch, **_: object) -> transaction.Accepted:
        made.append(entry)
        return transaction.Accepted("em_1", "req_1", b"{}", replayed=False)

    with monkeypatch.context() as patched:
        patched.setattr(shop.ctx.accept_commits, "start", commit)
        for one in (last, first):
            await one.batch(emails=[{**EMAIL, "from": "shop@example.com" if one is shop else "shop@example.org"}])
    begun, find = asyncio.Event(), idempotency.idempotency_keys

    async def slow(*args: Any, **kwargs: Any) -> object:
        begun.set()
        await asyncio.sleep(0.2)  # until the other one has what it can get
        return await find(*args, **kwargs)

    monkeypatch.setattr(idempotency, "idempotency_keys", slow)
    async with composition.open_context(settings, clock=shop.ctx.clock) as elsewhere:

        async def lock_both() -> None:
            await begun.wait()
            async with elsewhere.store.transaction() as tx:
                await stored_accounts.lock(tx, [first.account_id, last.account_id])

        commits = shop.ctx.accept_commits
        answers = await asyncio.gather(
            *(commits.submit(entry, size=entry.size, count=1) for entry in made), lock_both()
        )
    assert [len(results(answer)) for answer in answers if answer is not None] == [1, 1]


@pytest.fixture
def turns(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The parties that took turns in the threads."""
    taken: list[object] = []
    run = shop.ctx.threads.run

    async def counted(party: str, work: Callable[[], object]) -> object:
        taken.append(party)
        return await run(party, work)

    monkeypatch.setattr(shop.ctx.threads, "run", counted)
    return taken


async def test_a_batch_with_a_costly_template_takes_many_short_turns(
    shop: Shop, turns: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submit_batch, "TURN_SECONDS", 0.0)
    repeated = "{{name}}" * (rendering.INLINE_PLACEHOLDERS + 1)
    await templates.put(shop.ctx, shop.account_id, "welcome", subject="Hi", text=repeated, html=None)
    turns.clear()  # it was saved in one
    # As many as would be composed at once, and too large, so that each has to be rendered.
    some = [{"to": f"{place}@example.net", "variables": {"name": "x" * 20_000}} for place in range(4)]
    recipients = [*some, {"to": "ada@example.net", "variables": {"name": "x"}}]
    found = results(await shop.batch(recipients=recipients, **WELCOME))
    assert found[:4] == ["payload_too_large"] * 4
    assert found[4].startswith("em_")
    assert turns == [shop.account_id] * 5


async def test_a_costly_template_of_a_single_message_is_rendered_in_a_thread(shop: Shop, turns: list[object]) -> None:
    repeated = "{{name}}" * (rendering.INLINE_PLACEHOLDERS + 1)
    await templates.put(shop.ctx, shop.account_id, "welcome", subject="Hi", text=repeated, html=None)
    turns.clear()  # it was saved in one
    await accepted_mail.accept(
        shop.ctx, shop.account_id, subject=None, text=None, template="welcome", variables={"name": "x"}
    )
    assert turns == [shop.account_id]
