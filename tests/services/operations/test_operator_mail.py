"""Mail to postmaster and abuse goes to the operator, to nobody else, and only so much of it."""

import email
import email.policy

import pytest

from postroad import config, context, errors
from postroad.protocol.smtp import values
from postroad.services.operations import operator_mail
from postroad.storage.mail import messages, queue_views
from postroad.storage.people import accounts
from tests import accepted_mail, contexts

ForwardResult = operator_mail.ForwardResult
REPORT = b"From: eve@example.org\r\nSubject: spam\r\n\r\nYou sent me this.\r\n"


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return contexts.load(
        database_url,
        delivery={"return_path_domain": "Returns.example.org"},
        operator={"email": "ops@example.net", "from": "postmaster@example.com"},
    )


@pytest.fixture
def for_operator(ctx: context.Context) -> operator_mail.OperatorMail:
    return operator_mail.OperatorMail(ctx, host="mx.example.org")


async def forward(
    for_operator: operator_mail.OperatorMail, content: bytes = REPORT, *, client_address: str = "192.0.2.1"
) -> ForwardResult:
    transaction = values.MailTransaction("eve@example.org", ("Abuse@mx.example.org",), (content,))
    return await for_operator.forward(transaction, client_address=client_address)


async def queued(ctx: context.Context) -> list[tuple[str, bytes]]:
    async with ctx.store.reading() as tx:
        found = await queue_views.page(tx, queue_views.Filter(), state=None, limit=999)
        return [(one.email, await messages.body(tx, one.account_id, one.message_id) or b"") for one in found]


@pytest.mark.parametrize(
    "address, expected",
    [
        ("postmaster", True),
        ("PostMaster", True),
        ("abuse", False),
        ("postmaster@mx.example.org", True),
        ("ABUSE@MX.EXAMPLE.ORG", True),
        ("abuse@returns.example.org", True),
        ("postmaster@bounces.shop.example", True),
        ("postmaster@shop.example", False),
        ("postmaster@gmail.example", False),
        ("ada@mx.example.org", False),
        ("postmaster+x@mx.example.org", False),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_both_names_are_the_operators_at_names_of_the_listener(
    for_operator: operator_mail.OperatorMail, address: str, *, expected: bool
) -> None:
    assert for_operator.is_for_operator(address) is expected


async def test_the_original_is_attached_to_a_message_to_the_operator(
    ctx: context.Context, shop: str, for_operator: operator_mail.OperatorMail
) -> None:
    assert await forward(for_operator) is ForwardResult.FORWARDED
    ((to, mime),) = await queued(ctx)
    made = email.message_from_bytes(mime, policy=email.policy.default)
    assert (to, made["From"], made["To"]) == ("ops@example.net", "postmaster@example.com", "ops@example.net")
    assert made["Subject"] == "Mail to Abuse@mx.example.org"
    assert made["Auto-Submitted"] == "auto-forwarded"
    text, attached = made.iter_parts()
    assert "Envelope sender: eve@example.org\nClient address: 192.0.2.1\n" in text.get_content().replace("\r\n", "\n")
    assert (attached.get_filename(), attached.get_content()) == ("message.eml", REPORT)


async def test_what_was_forwarded_is_not_forwarded_again(
    ctx: context.Context, shop: str, for_operator: operator_mail.OperatorMail
) -> None:
    await forward(for_operator)
    ((_, mime),) = await queued(ctx)
    assert await forward(for_operator, mime) is ForwardResult.LOOP
    hop = b"Received: from a by b; Mon, 1 Jan 2026 00:00:00 +0000\r\n"
    assert await forward(for_operator, 101 * hop + REPORT) is ForwardResult.LOOP
    assert await forward(for_operator, 100 * hop + REPORT) is ForwardResult.FORWARDED


async def test_a_client_and_all_clients_together_have_a_limit_for_each_day(
    ctx: context.Context,
    account: accounts.Account,
    for_operator: operator_mail.OperatorMail,
    clock: contexts.Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (operator_mail.MAX_PER_NETWORK, operator_mail.MAX_PER_DAY) == (20, 100)
    assert ctx.settings.warmup.recipients_per_day[0] == 200
    monkeypatch.setattr(operator_mail, "MAX_PER_NETWORK", 2)
    monkeypatch.setattr(operator_mail, "MAX_PER_DAY", 3)
    await accepted_mail.allow_sending(ctx, account.id)
    one, other, third = "2001:db8::1", "2001:db8::2", "192.0.2.7"
    taken = [await forward(for_operator, client_address=each) for each in (one, other, other, third, third)]
    assert taken == ["forwarded", "forwarded", "limited", "forwarded", "limited"]
    clock.pass_seconds(24 * 3600)
    assert await forward(for_operator, client_address=one) is ForwardResult.FORWARDED
    assert len(await queued(ctx)) == 4


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_large_mail_is_refused(for_operator: operator_mail.OperatorMail) -> None:
    assert await forward(for_operator, REPORT + b"x" * 1024 * 1024) is ForwardResult.TOO_LARGE


async def test_without_a_verified_domain_to_send_from_nothing_is_accepted(
    ctx: context.Context, for_operator: operator_mail.OperatorMail
) -> None:
    with pytest.raises(errors.Forbidden, match=r"operator\.from: its domain is not verified"):
        await forward(for_operator)
    assert await queued(ctx) == []
