"""A wheel is all that Postroad needs: installed without the checkout, and run as `uvx postroad dev` runs it."""

import html
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from postroad import build_version
from tests import test_repository
from tests.deploy import installed_wheel
from tests.deploy.installed_wheel import TIMEOUT_SECONDS, Program, running

ROOT = test_repository.ROOT
# What uv says when the packages are neither in its cache nor reachable.
UNREACHABLE = ("Failed to fetch", "Network", "network", "Connection", "error sending request")
# A link of a page, and what a browser loads with it.
LINK = re.compile(r'(?:href|src)="(/[^"#]*)')
# Twice what there is: pages of a kind count once.
MAX_PAGES = 250
# What a link to a thing or to a search differs in.
NAME = re.compile(r"[a-z]+_[0-9a-f]{20,}|[\w.+-]+(?:@|%40)[\w.-]+|\?.*")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    environment, folder = tmp_path_factory.mktemp("environment"), tmp_path_factory.mktemp("empty")
    installed_wheel.make(environment)
    installed_wheel.install(environment, wheel)
    program = Program([str(environment / "bin" / "postroad")], folder)
    (packages,) = environment.glob("lib/python*/site-packages")
    where = [str(environment / "bin" / "python"), "-c", "import postroad; print(postroad.__file__)"]
    found = subprocess.run(where, env=program.environment(), capture_output=True, text=True, check=True)
    assert found.stdout == f"{packages}/postroad/__init__.py\n"
    return program


@pytest.fixture(scope="module")
def served(installed: Program) -> Iterator[dict[str, Any]]:
    """What `dev.json` says of a service that runs from the wheel, with a week of sample mail."""
    with running(installed, "--sample-week") as dev_info:
        yield dev_info


def send_and_wait(dev_info: dict[str, Any]) -> dict[str, Any]:
    """Send what the first start prints as a command, until the simulator has it."""
    mail = {"from": "hello@example.com", "to": "you@example.net", "template": "welcome", "variables": {"name": "you"}}
    fields = {"Authorization": f"Bearer {dev_info['api_key']}", "Idempotency-Key": "first"}
    with httpx.Client(base_url=dev_info["base_url"], headers=fields) as client:
        accepted = client.post("/emails", json=mail)
        assert accepted.status_code == 202, accepted.text
        give_up_at = time.monotonic() + TIMEOUT_SECONDS
        while True:
            message: dict[str, Any] = client.get(f"/emails/{accepted.json()['id']}").json()
            if message["status"] != "queued":
                return message
            assert time.monotonic() < give_up_at, message
            time.sleep(0.1)


def test_it_is_the_version_of_the_checkout(installed: Program) -> None:
    assert installed.run("--version") == f"postroad, version {build_version.current()}\n"


def test_it_writes_every_file_of_deploy(installed: Program) -> None:
    installed.run("deploy-files", "files")
    written = {
        str(file.relative_to(installed.folder)) for file in installed.folder.glob("files/**/*") if file.is_file()
    }
    repository = test_repository.repository_files("deploy")
    assert written == {str(Path("files") / file.relative_to(ROOT / "deploy")) for file in repository}


def test_it_sets_up_an_installation_that_is_valid(installed: Program) -> None:
    names = [
        "--hostname",
        "mail.example.com",
        "--account",
        "Shop",
        "--domain",
        "example.com",
        "--email",
        "a@example.com",
    ]
    file = str(installed.folder / "settings" / "postroad.toml")
    made = installed.run("init", "--yes", "--config", file, "--data", str(installed.folder / "mail"), *names)
    assert "_domainkey.example.com" in made
    installed.run("check-config", "--config", file)


def test_it_delivers_a_mail(served: dict[str, Any]) -> None:
    assert send_and_wait(served)["status"] == "delivered"


def test_it_serves_the_documentation_and_the_api_reference(served: dict[str, Any]) -> None:
    with httpx.Client(base_url=served["base_url"]) as client:
        pages = re.findall(r"\((?:http://[^/]+)?/(docs/[\w/.-]+\.md)\)", client.get("/llms.txt").text)
        assert len(pages) > 40
        for name in pages:
            assert client.get(f"/{name}").text.splitlines()[0] == (ROOT / name).read_text().splitlines()[0], name
        assert client.get("/openapi.json").json()["paths"].keys() > {"/emails"}
        loaded = re.findall('="(docs/[^"]+)"', client.get("/docs").text)
        assert len(loaded) == 3
        for path in loaded:
            assert client.get(f"/{path}").status_code == 200, path


def test_every_page_of_the_dashboard_and_what_it_loads_is_there(served: dict[str, Any]) -> None:
    with httpx.Client(base_url=served["base_url"]) as client:
        assert client.post("/login", data=served["login"]).status_code == 303
        waiting, seen, kinds = ["/", "/operator"], {"/", "/operator"}, set[str]()
        while waiting and len(kinds) < MAX_PAGES:
            path = waiting.pop(0)
            response = client.get(path, follow_redirects=True)
            assert response.status_code == 200, path
            kind = response.headers["Content-Type"].partition(";")[0]
            kinds.add(NAME.sub("", path))
            if kind != "text/html":
                continue
            for link in map(html.unescape, LINK.findall(response.text)):
                if NAME.sub("", link) not in {NAME.sub("", one) for one in seen}:
                    seen.add(link)
                    waiting.append(link)
    assert kinds > {"/messages", "/templates", "/domains", "/operator/accounts"}


@pytest.mark.skipif(shutil.which("uvx") is None, reason="uvx is not installed: pip install uv")
def test_uvx_runs_it_with_the_newest_packages(wheel: Path, tmp_path: Path) -> None:
    command = ["uvx", "--from", str(wheel), "postroad"]
    tried = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, cwd=tmp_path
    )
    if tried.returncode and any(word in tried.stderr for word in UNREACHABLE):
        pytest.skip("the packages of the service cannot be downloaded")
    with running(Program(command, tmp_path)) as dev_info:
        assert send_and_wait(dev_info)["status"] == "delivered"
