"""The submission door is tested on a real context, on both engines, with a certificate of its own authority."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import trustme

from postroad import config
from postroad.services import context, credentials
from postroad.storage import accounts
from tests import contexts, mailing
from tests.api import door
from tests.contexts import account, clock, ctx, database_url
from tests.submission import opening

__all__ = ["account", "clock", "ctx", "database_url"]


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificate(authority: trustme.CA, tmp_path: Path) -> opening.Files:
    """Files of a certificate for this host."""
    return opening.issue(authority, tmp_path)


@pytest.fixture
def settings(database_url: str, certificate: opening.Files) -> config.Settings:
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"secret_key": contexts.SECRET_KEY},
            "warmup": {"enabled": False},
            "submission": {
                "listen": "127.0.0.1:0",
                "tls_listen": "127.0.0.1:0",
                "tls_certificate": str(certificate.chain),
                "tls_key": str(certificate.key),
                "auth_without_tls": True,
            },
        },
    )


@pytest.fixture
def lines() -> door.Lines:
    return door.Lines()


@pytest_asyncio.fixture
async def opened(
    ctx: context.Context, account: accounts.Account, lines: door.Lines, authority: trustme.CA
) -> AsyncIterator[opening.Opened]:
    """The door, and an account that may send through it."""
    await mailing.allow(ctx, account.id)
    credential, password = await credentials.create(ctx, account.id, "main")
    async with opening.opened(ctx, lines=lines) as addresses:
        yield opening.Opened(
            ctx=ctx,
            account=account,
            credential=credential,
            password=password,
            lines=lines,
            addresses=addresses,
            authority=authority,
        )
