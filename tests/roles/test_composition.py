"""How the parts of a process are connected."""

import pytest

from postroad import config
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from tests import accepted_mail, contexts


@pytest.fixture
def settings(clean_sqlite_url: str) -> config.Settings:
    return contexts.load(clean_sqlite_url)


async def test_delivery_is_woken_in_the_process_that_commits_and_in_no_other(settings: config.Settings) -> None:
    async with (
        composition.open_context(settings) as writer,
        composition.open_context(settings, accept_commits=writer.accept_commits) as frontend,
    ):
        shop = await accounts.create(writer, "Shop")
        await accepted_mail.allow_sending(writer, shop.id)
        assert not writer.mail_wakeup.is_set()
        await accepted_mail.accept(frontend, shop.id)
        await writer.mail_wakeup.wait()
        assert not frontend.mail_wakeup.is_set()
