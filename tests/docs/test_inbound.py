"""The commands of docs/inbound.md work as they are printed, on a service as `postroad dev` starts it."""

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from postroad.inbound import session
from postroad.model.events import events
from postroad.model.units import times
from postroad.services.inbound import attachment_links, receive
from tests.cli import cli_runner

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "inbound.md").read_text()
EXAMPLE = re.compile(r"<!-- example: inbound -->\n```sh\n(.*?)\n```", re.DOTALL)
# Generous, for a machine that is busy with other tests.
TIMEOUT_SECONDS = 600.0


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What `dev.json` of a running service says, with a key for routes beside that for mail."""
    folder = tmp_path_factory.mktemp("inbound")
    file = folder / ".postroad" / "dev.json"
    with cli_runner.Service("dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0", folder=folder) as service:
        text = service.wait_for(lambda: file.read_text() if file.exists() else None, what="dev.json")
        yield json.loads(text)
        assert service.stop()[0] == 0


def route_key(dev: dict[str, Any]) -> str:
    token = httpx.post(f"{dev['base_url']}/v1/auth/login", json=dev["login"]).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    body = {"name": "Routes", "scopes": ["domains"]}
    return str(httpx.post(f"{dev['base_url']}/v1/api-keys", json=body, headers=headers).json()["secret"])


def run(text: str, dev: dict[str, Any], *, key: str = "") -> str:
    """What the command prints."""
    inbound = dev["inbound"]
    filled = text.replace("127.0.0.1:40026", f"{inbound['host']}:{inbound['port']}")
    filled = filled.replace("http://127.0.0.1:8025", dev["base_url"]).replace("pr_live_…", key or dev["api_key"])
    words = [*shlex.split(filled.replace("\\\n", " ")), "--silent", "--show-error", "--fail"]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=TIMEOUT_SECONDS).stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_receive_a_mail_list_it_and_make_a_route(dev: dict[str, Any]) -> None:
    sending, listing, adding = EXAMPLE.findall(PAGE)
    run(sending, dev)
    give_up_at = time.monotonic() + TIMEOUT_SECONDS
    while not (messages := json.loads(run(listing, dev))["messages"]):
        assert time.monotonic() < give_up_at
    (mail,) = messages
    found = (mail["from"], mail["to"], mail["subject"])
    assert found == ("Ada <ada@example.net>", "support@in.example.com", "Where is my order?")
    route = json.loads(run(adding, dev, key=route_key(dev)))["route"]
    assert route["match"] == "support+*@in.example.com"


def test_the_limits_are_those_of_the_code() -> None:
    assert f"| a message | {session.MAX_MESSAGE_BYTES // 1024**2} MiB |" in PAGE
    assert (receive.MAX_BYTES_PER_DAY, receive.MAX_BYTES_PER_NETWORK) == (1024**3, 256 * 1024**2)
    assert f"| mail of an account in a UTC day | {receive.MAX_MESSAGES_PER_DAY:,}, and 1 GiB |" in PAGE
    assert f"| of that, from one sending network | {receive.MAX_PER_NETWORK:,}, and 256 MiB |" in PAGE
    assert f"at most {events.BODY_CHARACTERS:,} characters each" in PAGE
    assert (attachment_links.LIFETIME, "works for 7 days" in PAGE) == (7 * times.DAY, True)
