"""An account that may send."""

import pytest

from postroad import context
from postroad.storage.people import accounts
from tests import accepted_mail


@pytest.fixture
async def shop(ctx: context.Context, account: accounts.Account) -> str:
    await accepted_mail.allow_sending(ctx, account.id)
    return account.id
