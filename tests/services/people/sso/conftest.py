"""A provider on loopback, whose clock is that of the context; customers may use loopback here."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from postroad import config, context
from tests import contexts, oidc_provider
from tests.services.people.sso import sso_setup


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"installation_key": contexts.SECRET_KEY},
            "webhooks": {"allow_insecure": True},
            "http": {"base_url": "https://mail.example.org"},
        },
    )


@pytest_asyncio.fixture
async def unconnected(ctx: context.Context, account_id: str, clock: contexts.Clock) -> AsyncIterator[sso_setup.Sso]:
    async with oidc_provider.running(now=lambda: clock() / contexts.SECOND) as provider:
        yield sso_setup.Sso(ctx, account_id, provider)


@pytest_asyncio.fixture
async def sso(unconnected: sso_setup.Sso) -> sso_setup.Sso:
    """The account is connected with the provider."""
    await unconnected.connect()
    return unconnected
