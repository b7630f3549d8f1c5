"""An upgrade from the release before: its wheel makes mail, and this one is installed over it and finds all of it.

`make test-packages PREVIOUS=…` says what the release before is: the file or the address of its wheel, or a commit. With
`baseline` it is the commit from which on databases can be migrated.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from postroad import build_version
from postroad.storage.engine import migrations
from tests import test_repository
from tests.deploy import installed_wheel
from tests.deploy.installed_wheel import Program

ROOT = test_repository.ROOT
PREVIOUS = os.environ.get("PREVIOUS", "")
BASELINE = "src/postroad/storage/migration_scripts/sqlite/0001_baseline.sql"
MAIL = {"from": "hello@example.com", "to": "you@example.net", "subject": "Hello", "text": "Hello."}

pytestmark = pytest.mark.skipif(not PREVIOUS, reason="names no release before this one: make test-packages")


def build(checkout: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def output(*words: str) -> str:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def wheel_before(folder: Path) -> Path:
    """The wheel of the release before."""
    if PREVIOUS.endswith(".whl") and Path(PREVIOUS).exists():
        return Path(PREVIOUS)
    if "://" in PREVIOUS:
        file = folder / PREVIOUS.rpartition("/")[2]
        file.write_bytes(httpx.get(PREVIOUS, follow_redirects=True).raise_for_status().content)
        return file
    commit = output("git", "log", "-1", "--format=%H", "--", BASELINE) if PREVIOUS == "baseline" else PREVIOUS
    checkout = folder / "checkout"
    output("git", "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(checkout))
    output("git", "-C", str(checkout), "checkout", "--quiet", commit)
    return build(checkout, folder)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_before(tmp_path_factory.mktemp("before"))


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("after"))


def client_of(dev_info: dict[str, Any]) -> httpx.Client:
    return httpx.Client(base_url=dev_info["base_url"], headers={"Authorization": f"Bearer {dev_info['api_key']}"})


def send(client: httpx.Client, key: str, **more: object) -> str:
    response = client.post("/emails", json={**MAIL, **more}, headers={"Idempotency-Key": key})
    assert response.status_code == 202, response.text
    return str(response.json()["id"])


def status_at_the_end(client: httpx.Client, message_id: str) -> str:
    give_up_at = time.monotonic() + installed_wheel.TIMEOUT_SECONDS
    while (status := client.get(f"/emails/{message_id}").json()["status"]) in ("queued", "scheduled"):
        assert time.monotonic() < give_up_at, message_id
        time.sleep(0.1)
    return str(status)


def test_an_upgrade_keeps_all_mail_and_sends_what_waited(before: Path, after: Path, tmp_path: Path) -> None:
    environment, folder = tmp_path / "environment", tmp_path / "data"
    folder.mkdir()
    installed_wheel.make(environment)
    program = Program([str(environment / "bin" / "postroad")], folder)

    installed_wheel.install(environment, before)
    version_before = program.run("--version").rpartition(" ")[2].strip()
    with installed_wheel.running(program) as dev_info, client_of(dev_info) as client:
        delivered = [send(client, f"now-{number}") for number in range(20)]
        assert {status_at_the_end(client, message) for message in delivered} == {"delivered"}
        in_an_hour = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        waiting = send(client, "later", send_at=in_an_hour)

    installed_wheel.install(environment, after)
    assert program.run("--version") == f"postroad, version {build_version.current()}\n"
    data = ["--data", str(folder / ".postroad")]
    checked = subprocess.run(
        [*program.command, "migrate", "--check", *data],
        env=program.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    newest = migrations.known("sqlite")[-1]
    is_current = checked.stdout.startswith("The schema is up to date.")
    assert checked.returncode == (0 if is_current else 1), checked.stdout + checked.stderr
    assert is_current or f"{newest.version:04d} {newest.name}" in checked.stdout
    print(f"From {version_before}:\n{checked.stdout}")  # noqa: T201 - for pytest -s

    with installed_wheel.running(program) as again, client_of(again) as client:
        assert [client.get(f"/emails/{message}").json()["status"] for message in delivered] == ["delivered"] * 20
        assert send(client, "now-0") == delivered[0]
        assert client.patch(f"/emails/{waiting}", json={"send_at": None}).status_code == 200
        assert status_at_the_end(client, waiting) == "delivered"
        assert status_at_the_end(client, send(client, "new")) == "delivered"
    assert program.run("verify", *data).endswith("no findings.\n")
    assert program.run("migrate", "--check", *data) == "The schema is up to date.\n"
