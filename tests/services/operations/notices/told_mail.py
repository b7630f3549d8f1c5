"""Fixtures and helpers for tests of notices: an installation that sends them, and the mail that it queues."""

import email
import email.message
import email.policy

import pytest

from postroad import config, context
from postroad.services.accounts import account_registry
from postroad.storage.mail import messages, queue_views
from postroad.storage.operations import notices
from postroad.storage.people import accounts
from tests import accepted_mail, contexts, webhook_server

BASE_URL = "https://mail.example.org"


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return contexts.load(
        database_url,
        http={"base_url": BASE_URL},
        warmup={"enabled": False},
        webhooks={"allow_insecure": True, "allow_private": [webhook_server.PUBLIC]},
        operator={"from": f"postmaster@{accepted_mail.DOMAIN}"},
    )


@pytest.fixture
async def home(ctx: context.Context) -> accounts.Account:
    """The account of the installation's domain."""
    account = await account_registry.create(ctx, "Installation")
    await accepted_mail.allow_sending(ctx, account.id)
    return account


async def queued(ctx: context.Context) -> list[tuple[str, email.message.EmailMessage]]:
    """Every recipient in the queue with the message."""
    async with ctx.store.reading() as tx:
        found = await queue_views.page(tx, queue_views.Filter(), state=None, limit=999)
        bodies = [(one.email, await messages.body(tx, one.account_id, one.message_id) or b"") for one in found]
    return [(to, email.message_from_bytes(body, policy=email.policy.default)) for to, body in bodies]


def text_of(message: email.message.EmailMessage, kind: str = "plain") -> str:
    part = message.get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


async def contents(ctx: context.Context) -> str:
    """The stored values of all notices."""
    async with ctx.store.transaction() as tx:
        await tx.run_script("UPDATE notices SET resolved_at = NULL")
        return "\n".join(one.content for one in await notices.unresolved(tx, limit=99))
