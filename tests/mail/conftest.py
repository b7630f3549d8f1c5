"""What runs for each message is tested on a real context, on both engines."""

import pytest_asyncio

from postroad import context
from postroad.storage.people import accounts
from tests import accepted_mail
from tests.contexts import account, clock, ctx, database_url, owner, settings

__all__ = ["account", "clock", "ctx", "database_url", "owner", "settings"]


@pytest_asyncio.fixture
async def sender(ctx: context.Context, account: accounts.Account) -> str:
    """The id of an account that may send."""
    await accepted_mail.allow_sending(ctx, account.id)
    return account.id
