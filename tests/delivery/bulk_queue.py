"""Queues of any length, made quickly, by the accepting transaction itself."""

from typing import Final

from postroad import context
from postroad.mail.accept import transaction
from postroad.model.delivery import throttle
from postroad.model.mail import statuses
from postroad.model.units import identifiers
from postroad.services.accounts import account_registry as accounts
from postroad.storage.mail import messages
from tests import accepted_mail

BATCH: Final = 2_000
# What the store has to keep of each message, and how many may come, is not what these tests are about.
POLICIES: Final = transaction.Policies(
    rate=throttle.RateLimit(rate=1_000_000, burst=1_000_000), warmup_caps=(), clock=lambda: 0
)
MIME: Final = b"From: shop@example.com\r\nMessage-ID: <%s@example.com>\r\nSubject: Hello\r\n\r\nHello\r\n"


async def new_account(ctx: context.Context, name: str, *, domain: str = accepted_mail.DOMAIN) -> str:
    """An account that may send as much as it likes."""
    account = await accounts.create(ctx, name)
    await accepted_mail.allow_sending(ctx, account.id, domain=domain, amount=1_000_000)
    return account.id


async def fill(
    ctx: context.Context, account_id: str, domain: str, *, count: int, each: int = 1, name: str = "n"
) -> list[str]:
    """Accept messages with `each` recipients, `count` recipients in all; returns their addresses."""
    emails = [f"{name}{number}@{domain}" for number in range(count)]
    submissions = [
        submission(ctx, account_id, emails[start : start + each], now=ctx.clock() + start)
        for start in range(0, count, each)
    ]
    size = max(1, BATCH // each)
    for start in range(0, len(submissions), size):
        async with ctx.store.transaction() as tx:
            await transaction.store_entries(tx, submissions[start : start + size], policies=POLICIES, outbox=ctx.outbox)
    ctx.mail_wakeup.set()
    return emails


def submission(
    ctx: context.Context, account_id: str, emails: list[str], *, now: int, mime: bytes | None = None
) -> transaction.Submission:
    """A message that was accepted with exactly these bytes, as the SMTP listener would accept it, or a short one."""
    message_id = ctx.new_id(identifiers.MESSAGE, now=now)
    sender, content = f"shop@{accepted_mail.DOMAIN}", mime if mime is not None else MIME % message_id.encode()
    message = messages.NewMessage(
        id=message_id,
        account_id=account_id,
        credential_id=account_id,
        source=statuses.Source.SMTP,
        sender=sender,
        sender_key=sender,
        subject="Hello",
        recipient_count=len(emails),
        credits_reserved=len(emails),
        size=len(content),
        request_id="req_" + "0" * 28,
        response=b"{}",
        created_at=ctx.clock(),
        mime=content,
        tags=(),
    )
    ids = [ctx.new_id(identifiers.RECIPIENT, now=now + index) for index in range(len(emails))]
    to = [
        messages.NewRecipient(message_id, recipient_id, account_id, email, email, email.rpartition("@")[2])
        for recipient_id, email in zip(ids, emails, strict=True)
    ]
    return transaction.Submission(message, to, ctx.new_id(identifiers.LEDGER, now=now), None)
