"""Services are tested on a real context, on both engines, with a name server of their own where they ask one."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from postroad import context
from postroad.storage.people import accounts
from tests import accepted_mail, dns_server
from tests.contexts import account, clock, ctx, database_url, other_process, owner, settings

__all__ = ["account", "clock", "ctx", "database_url", "other_process", "owner", "settings"]


@pytest.fixture
async def account_id(account: accounts.Account) -> str:
    return account.id


@pytest.fixture
async def shop(ctx: context.Context, account: accounts.Account) -> str:
    """An account that may send."""
    await accepted_mail.allow_sending(ctx, account.id)
    return account.id


@pytest_asyncio.fixture
async def server() -> AsyncIterator[dns_server.DnsServer]:
    """A name server whose zones tests write."""
    async with dns_server.running({}) as running:
        yield running
