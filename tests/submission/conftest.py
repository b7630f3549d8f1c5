"""The submission listener is tested on a real context, with a certificate of its own authority.

What it does does not depend on the store: what is accepted is tested on both engines in tests/mail/accept.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import trustme

from postroad import config, context
from postroad.services.people import credentials
from postroad.storage.people import accounts
from tests import accepted_mail, contexts
from tests.api import app_server
from tests.contexts import account, clock, ctx
from tests.submission import submission_server

__all__ = ["account", "clock", "ctx"]


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificate(authority: trustme.CA, tmp_path: Path) -> submission_server.Files:
    """Files of a certificate for this host."""
    return submission_server.issue(authority, tmp_path)


@pytest.fixture
def settings(clean_sqlite_url: str, certificate: submission_server.Files) -> config.Settings:
    return contexts.load(
        clean_sqlite_url,
        warmup={"enabled": False},
        submission={
            "listen": "127.0.0.1:0",
            "tls_listen": "127.0.0.1:0",
            "auth_without_tls": True,
        },
        tls={"certificate": str(certificate.chain), "key": str(certificate.key)},
    )


@pytest.fixture
def lines() -> app_server.CapturedLog:
    return app_server.CapturedLog()


@pytest_asyncio.fixture
async def server(
    ctx: context.Context, account: accounts.Account, lines: app_server.CapturedLog, authority: trustme.CA
) -> AsyncIterator[submission_server.SubmissionServer]:
    """The listener, and an account that may send through it."""
    await accepted_mail.allow_sending(ctx, account.id)
    credential, password = await credentials.create(ctx, account.id, "main")
    async with submission_server.running(ctx, lines=lines) as addresses:
        yield submission_server.SubmissionServer(
            ctx=ctx,
            account=account,
            credential=credential,
            password=password,
            lines=lines,
            addresses=addresses,
            authority=authority,
        )
