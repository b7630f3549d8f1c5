"""Services are tested on a real context, on both engines."""

import pytest

from postroad import context
from postroad.storage.people import accounts
from tests import accepted_mail
from tests.contexts import account, clock, ctx, database_url, other_process, owner, settings

__all__ = ["account", "clock", "ctx", "database_url", "other_process", "owner", "settings"]


@pytest.fixture
async def shop(ctx: context.Context, account: accounts.Account) -> str:
    """An account that may send."""
    await accepted_mail.allow_sending(ctx, account.id)
    return account.id
