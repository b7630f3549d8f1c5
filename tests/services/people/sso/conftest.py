"""A provider on loopback, whose clock is that of the context; customers may use loopback here."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from postroad import config
from tests import contexts, oidc_provider


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"secret_key": contexts.SECRET_KEY},
            "webhooks": {"allow_insecure": True},
            "http": {"base_url": "https://mail.example.org"},
        },
    )


@pytest_asyncio.fixture
async def provider(clock: contexts.Clock) -> AsyncIterator[oidc_provider.Provider]:
    async with oidc_provider.running(now=lambda: clock() / contexts.SECOND) as running:
        yield running
