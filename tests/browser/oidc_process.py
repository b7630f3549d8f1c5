"""node-oidc-provider in a process of its own (oidc_provider.mjs), and what people do on its pages."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from playwright import async_api

from tests.browser import skip_report

HERE: Final = Path(__file__).parent
PROGRAM: Final = HERE / "oidc_provider.mjs"
PACKAGE: Final = HERE / "node_modules" / "oidc-provider" / "package.json"
# A bound for a machine that is busy with other tests; it starts within a second.
START_SECONDS: Final = 300


def skip_without() -> None:
    """Skip the test where it is not installed."""
    if shutil.which("node") is None or not PACKAGE.exists():
        skip_report.skip(
            "single sign-on with a real provider", because="oidc-provider is not installed", remedy="run 'make test'"
        )


@contextlib.asynccontextmanager
async def running(clients: Sequence[dict[str, Any]], *, port: int = 0) -> AsyncIterator[int]:
    """A provider for the time of the block, with new keys; its port."""
    process = await asyncio.create_subprocess_exec(
        "node", str(PROGRAM), cwd=HERE, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps({"port": port, "clients": clients}).encode() + b"\n")
        async with asyncio.timeout(START_SECONDS):
            listening = int(await process.stdout.readline())
        yield listening
    finally:
        process.stdin.close()
        await process.wait()


async def log_in(page: async_api.Page, email: str) -> None:
    """Log in at the provider, and agree that Postroad learns the email."""
    await page.fill("input[name=login]", email)
    await page.fill("input[name=password]", "any")
    await page.click("button[type=submit]")
    await page.get_by_role("button", name="Continue").click()


async def log_out(page: async_api.Page) -> None:
    """Confirm at the provider that its session ends, too."""
    await page.get_by_role("button", name="Yes, sign me out").click()
