"""The test email: the way of all mail, for a credit, with the source `test`; and whom it may come from."""

import msgspec
import pytest

from postroad import config, context, errors
from postroad.mail.accept import rendering
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import lookup as messages
from postroad.services.messages import sample_send
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail
from tests.contexts import Clock

REQUEST = "req_" + "1" * 28


async def send(ctx: context.Context, account_id: str, *, sender: str = "hello@example.com") -> dict[str, object]:
    accepted = await sample_send.send(
        ctx, accepted_mail.caller_of(account_id), sender=sender, to="ada@example.net", request_id=REQUEST
    )
    receipt: dict[str, object] = msgspec.json.decode(accepted.response)
    return receipt


async def test_a_test_email_is_a_message_like_any_other_but_for_its_source(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    await accepted_mail.allow_sending(ctx, account.id, amount=2)
    ctx.mail_wakeup.clear()
    receipt = await send(ctx, account.id)
    assert (receipt["source"], receipt["request_id"], receipt["from"]) == ("test", REQUEST, "hello@example.com")
    assert (receipt["to"], receipt["credits_reserved"]) == (["ada@example.net"], 1)
    await ctx.mail_wakeup.wait()
    found, reached = await messages.find(ctx, account.id, str(receipt["id"]))
    assert (found.source, found.status, found.subject) == ("test", "queued", "It works: your test email from Postroad")
    assert [one.email for one in reached] == ["ada@example.net"]
    assert (await accounts.find(ctx, account.id)).available == 1


async def test_a_template_is_tried_out_as_it_was_filled_in(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    await accepted_mail.allow_sending(ctx, account.id, amount=1)
    content = rendering.Rendered("Hello Ada", "Dear Ada", "<p>Dear Ada</p>")
    accepted = await sample_send.send_rendered(
        ctx,
        accepted_mail.caller_of(account.id),
        content,
        sender="hello@example.com",
        to="ada@example.net",
        request_id=REQUEST,
    )
    found, _ = await messages.find(ctx, account.id, accepted.message_id)
    assert (found.source, found.subject) == ("test", "Hello Ada")
    assert b"<p>Dear Ada</p>" in await messages.raw(ctx, account.id, accepted.message_id)
    assert (await accounts.find(ctx, account.id)).available == 0


async def test_it_is_refused_by_the_rules_of_all_mail(ctx: context.Context, account: stored_accounts.Account) -> None:
    await accepted_mail.allow_sending(ctx, account.id, amount=1)
    with pytest.raises(errors.Forbidden, match=r"^from: elsewhere\.example is not a domain of this account"):
        await send(ctx, account.id, sender="hello@elsewhere.example")
    with pytest.raises(errors.InvalidRequest, match=r"^from: "):
        await send(ctx, account.id, sender="x\r\nBcc: eve@example.org")
    await send(ctx, account.id)
    with pytest.raises(errors.InsufficientCredits):
        await send(ctx, account.id)


async def test_the_usual_sender_is_of_the_first_domain_that_may_send(
    ctx: context.Context, account: stored_accounts.Account, clock: Clock
) -> None:
    assert await sample_send.default_sender(ctx, account.id) is None
    other = await accounts.create(ctx, "Other")
    for name in ("taken.example", "young.example", "old.example"):
        await domains.add(ctx, account.id, name, verified=name == "old.example")
        clock.pass_seconds(1)
    await domains.add(ctx, other.id, "taken.example", verified=True)
    assert await sample_send.default_sender(ctx, account.id) == "hello@old.example"


@pytest.mark.parametrize("required", [True, False])
async def test_a_domain_that_is_not_proven_sends_where_nobody_asks_for_proof(
    settings: config.Settings, clock: Clock, *, required: bool
) -> None:
    rules = msgspec.structs.replace(settings.domains, require_verified=required)
    async with composition.open_context(msgspec.structs.replace(settings, domains=rules), clock=clock) as ctx:
        account = await accounts.create(ctx, "Shop")
        await domains.add(ctx, account.id, "young.example", verified=False)
        expected = None if required else "hello@young.example"
        assert await sample_send.default_sender(ctx, account.id) == expected


async def test_senders_are_one_of_each_domain_that_may_send_up_to_a_number(
    ctx: context.Context, account: stored_accounts.Account, clock: Clock
) -> None:
    for name in ("first.example", "second.example", "young.example", "third.example"):
        await domains.add(ctx, account.id, name, verified=name != "young.example")
        clock.pass_seconds(1)
    proven = [f"hello@{name}.example" for name in ("first", "second", "third")]
    assert (await sample_send.senders(ctx, account.id, limit=10))[:3] == proven
    assert await sample_send.senders(ctx, account.id, limit=2) == proven[:2]
