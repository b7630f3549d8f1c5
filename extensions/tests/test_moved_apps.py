"""A small application of another service is moved by variables: the examples of the pages about it, as they are.

The packages are those of the service, unmodified. Before and after is the same program; only its environment differs.
"""

import asyncio
import contextlib
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import structlog

from postroad import context
from postroad.api import extension_api
from postroad.network.http import http_server
from postroad.services.messages import lookup
from postroad.storage.people import accounts
from postroad.web import path_switch
from postroad_postmark import api as postmark
from postroad_resend import api as resend
from tests import accepted_mail, vendor_server
from tests.compat import compat_client
from tests.docs.test_migration import example

MODULES = Path(__file__).parents[2] / "tests" / "compat" / "node_modules"
THEIR_ID = "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"
# A bound for a machine that is busy with other tests; a program takes a second.
TIMEOUT_SECONDS = 300


@contextlib.asynccontextmanager
async def served(ctx: context.Context, api: extension_api.HttpApi) -> AsyncIterator[str]:
    """The URL of a real listener with one compatible API, to which requests belong by their path or header fields."""
    log = structlog.wrap_logger(
        structlog.ReturnLogger(), wrapper_class=structlog.make_filtering_bound_logger("critical")
    )
    application = extension_api.build_application(ctx, api, log=log)
    marks = dict.fromkeys(api.own_headers, api.prefix)
    switch = path_switch.PathPrefixes({api.prefix: application}, application, headers=marks)
    listener = http_server.HttpListener(switch, refuse=application.refuse)
    await listener.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.address[1]}"
    finally:
        await listener.stop(grace_seconds=5)


async def run(language: str, code: str, environment: Mapping[str, str], folder: Path) -> str:
    """What a program prints."""
    tool = {"python": sys.executable, "javascript": "node", "curl": "sh"}[language]
    if shutil.which(tool) is None or (language == "javascript" and not MODULES.is_dir()):
        pytest.skip(f"{tool} or its packages are missing: run npm ci in tests/compat")
    file = folder / "program"
    file.write_text(code)
    variables = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        tool,
        str(file),
        env={**variables, "NODE_PATH": str(MODULES), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            printed, complaints = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (process.returncode, complaints) == (0, b""), complaints
    return printed.decode().strip()


@pytest.mark.parametrize(
    "language, variable", [("python", "RESEND_API_URL"), ("javascript", "RESEND_BASE_URL"), ("curl", "RESEND_BASE_URL")]
)
async def test_an_application_of_resend_moves_by_one_variable_and_its_key(
    ctx: context.Context, account: accounts.Account, language: str, variable: str, tmp_path: Path
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    code = example("migrate-from-resend.md", language)
    with vendor_server.running({}, posted={"id": THEIR_ID}) as theirs:
        before = await run(language, code, {variable: theirs.url, "RESEND_API_KEY": "re_1"}, tmp_path)
    assert THEIR_ID in before
    assert theirs.requests == ["/emails"]
    async with served(ctx, resend.API) as url:
        after = await run(language, code, {variable: f"{url}/compat/resend", "RESEND_API_KEY": key}, tmp_path)
    await assert_accepted(ctx, account.id, after)


@pytest.mark.parametrize(
    "language, variable, path",
    [
        ("python", "POSTMARK_ROOT_API_URL", "/"),
        ("javascript", "POSTMARK_URL", "/compat/postmark"),
        ("curl", "POSTMARK_URL", "/compat/postmark"),
    ],
)
async def test_an_application_of_postmark_moves_by_one_variable_and_its_token(
    ctx: context.Context, account: accounts.Account, *, language: str, variable: str, path: str, tmp_path: Path
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    code = example("migrate-from-postmark.md", language)
    posted = {"To": "ada@example.net", "MessageID": THEIR_ID, "ErrorCode": 0, "Message": "OK"}
    with vendor_server.running({}, posted=posted) as theirs:
        before = await run(language, code, {variable: theirs.url, "POSTMARK_SERVER_TOKEN": "token"}, tmp_path)
    assert THEIR_ID in before
    assert theirs.requests == ["/email"]
    async with served(ctx, postmark.API) as url:
        after = await run(language, code, {variable: f"{url}{path}", "POSTMARK_SERVER_TOKEN": key}, tmp_path)
    await assert_accepted(ctx, account.id, after)


async def assert_accepted(ctx: context.Context, account_id: str, printed: str) -> None:
    """A message with the id that the program has printed is there."""
    (message_id,) = re.findall(r"em_[0-9a-f]+", printed)
    found = (await lookup.details(ctx, account_id, message_id)).receipt
    assert (found.to, found.subject) == (("ada@example.net",), "Welcome")
