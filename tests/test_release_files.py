"""What `make release` makes with every tool of this machine: the same bytes twice, and packages that work alone.

It takes minutes, so `make test-packages` and `make test-all` run it.
"""

import http.server
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import postroad
from tests import test_release
from tests.deploy import helm_chart, installed_wheel
from tests.deploy.installed_wheel import Program
from tests.reliability import profile
from tests.test_release import repository

__all__ = ["repository"]

VERSION = postroad.__version__
TIMEOUT_SECONDS = 600
MAIL = {"from": "hello@example.com", "to": "you@example.net", "subject": "Hello", "text": "Hello."}

pytestmark = pytest.mark.skipif(not profile.IS_LONG, reason="takes minutes: make test-packages")


@pytest.fixture(scope="module")
def dist(repository: Path) -> Path:
    made = test_release.release(repository, programs=None)
    assert made.returncode == 0, made.stderr
    return repository / "dist"


def needs(dist: Path, name: str) -> Path:
    if not (dist / name).exists():
        pytest.skip(f"{name} cannot be made on this machine")
    return dist / name


def run(*words: str | Path, folder: Path, given: str = "", **environment: str) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        input=given,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def environment(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The service, its extensions and the Python client, each from its wheel."""
    folder = tmp_path_factory.mktemp("environment")
    installed_wheel.make(folder)
    wheels = sorted(dist.glob("*.whl"))
    assert len(wheels) == 5
    for wheel in wheels:
        installed_wheel.install(folder, wheel)
    return folder


@pytest.fixture(scope="module")
def program(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program([str(environment / "bin" / "postroad")], tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def served(program: Program) -> Iterator[dict[str, Any]]:
    assert program.run("--version") == f"postroad, version {VERSION}\n"
    with installed_wheel.running(program) as dev_info:
        yield dev_info


def test_a_second_build_in_another_folder_gives_the_same_bytes(dist: Path, repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "another" / "place"
    test_release.git(repository, "clone", "--quiet", str(repository), str(other))
    again = test_release.release(other, programs=None, umask=0o077)
    assert again.returncode == 0, again.stderr
    assert test_release.hashes(other / "dist") == test_release.hashes(dist)
    assert test_release.hashes(dist).keys() >= test_release.FILES


def test_the_wheel_sends_mail_and_webhooks_that_the_python_client_verifies(
    served: dict[str, Any], environment: Path, tmp_path: Path
) -> None:
    with webhook_endpoint() as (url, requests):
        token = httpx.post(f"{served['base_url']}/v1/auth/login", json=served["login"]).json()["token"]
        fields = {"Authorization": f"Bearer {token}"}
        made = httpx.post(f"{served['base_url']}/v1/webhooks", json={"url": url}, headers=fields)
        assert made.status_code == 201, made.text
        code = (
            "import json, sys, postroad_client as p\n"
            "mail = json.loads(sys.stdin.read())\n"
            "client = p.Client(sys.argv[1], token=sys.argv[2])\n"
            "email = p.Email(sender=mail['from'], to=mail['to'], subject=mail['subject'], text=mail['text'])\n"
            "receipt = client.send(email)\n"
            "print(client.wait(receipt.id, timeout=300).status)\n"
        )
        python = environment / "bin" / "python"
        words = (python, "-c", code, served["base_url"], served["api_key"])
        assert run(*words, folder=tmp_path, given=json.dumps(MAIL)) == "delivered"
        types = set()
        while "email.delivered" not in types:
            headers, body = requests.get(timeout=TIMEOUT_SECONDS)
            code = (
                "import sys, postroad_client as p\n"
                "event = p.parse_event(sys.stdin.buffer.read(), sys.argv[1], sys.argv[2])\n"
                "print(event.type)\n"
            )
            checked = (python, "-c", code, headers["Service-Signature"], made.json()["secret"])
            types.add(run(*checked, folder=tmp_path, given=body.decode()))


class webhook_endpoint:  # noqa: N801 - read as a phrase
    """An endpoint on loopback: its address, and the requests that it gets."""

    def __enter__(self) -> tuple[str, "queue.Queue[tuple[dict[str, str], bytes]]"]:
        requests: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                requests.put((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return f"http://127.0.0.1:{self.server.server_port}/hooks", requests

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def test_the_javascript_package_sends(dist: Path, served: dict[str, Any], tmp_path: Path) -> None:
    package = needs(dist, "postroad-javascript-0.1.0.tgz")
    (tmp_path / "package.json").write_text("{}")
    run("npm", "install", "--offline", "--no-audit", "--no-fund", str(package), folder=tmp_path)
    code = """
import { Postroad } from "postroad";
const client = new Postroad({ baseUrl: process.argv[2], token: process.argv[3] });
const mail = { from: "hello@example.com", to: "you@example.net", subject: "Hello", text: "Hello." };
const receipt = await client.send(mail);
console.log((await client.wait(receipt.id, { timeout: 300_000 })).status);
"""
    (tmp_path / "send.mjs").write_text(code)
    words = ("node", "send.mjs", served["base_url"], served["api_key"])
    assert run(*words, folder=tmp_path) == "delivered"


def test_the_gem_sends(dist: Path, served: dict[str, Any], tmp_path: Path) -> None:
    package = needs(dist, "postroad-0.1.0.gem")
    home = tmp_path / "gems"
    run("gem", "install", "--local", "--no-document", "--install-dir", home, package, folder=tmp_path)
    code = """
require "postroad"
client = Postroad::Client.new(ARGV[0], token: ARGV[1])
email = Postroad::Email.new(from: "hello@example.com", to: "you@example.net", subject: "Hello", text: "Hello.")
puts client.wait(client.deliver(email).id, timeout: 300).status
"""
    (tmp_path / "send.rb").write_text(code)
    words = ("ruby", "send.rb", served["base_url"], served["api_key"])
    assert run(*words, folder=tmp_path, GEM_HOME=str(home), GEM_PATH=str(home)) == "delivered"


@pytest.mark.skipif(shutil.which("php") is None, reason="php is not installed: apt-get install php-cli")
def test_the_php_package_sends(dist: Path, served: dict[str, Any], tmp_path: Path) -> None:
    with zipfile.ZipFile(dist / "postroad-php-0.1.0.zip") as archive:
        archive.extractall(tmp_path)
    code = """<?php
require 'postroad-php-0.1.0/src/autoload.php';
$client = new Postroad\\Client($argv[1], token: $argv[2]);
$email = new Postroad\\Email(from: 'hello@example.com', to: 'you@example.net', subject: 'Hello', text: 'Hello.');
echo $client->wait($client->send($email)->id, timeout: 300)->status;
"""
    (tmp_path / "send.php").write_text(code)
    assert run("php", "send.php", served["base_url"], served["api_key"], folder=tmp_path) == "delivered"


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed: apt-get install golang-go")
def test_the_go_module_sends(dist: Path, served: dict[str, Any], tmp_path: Path) -> None:
    """From a folder that is laid out as a proxy of modules is."""
    proxy = tmp_path / "proxy" / "github.com" / "postroad" / "postroad" / "clients" / "go" / "@v"
    proxy.mkdir(parents=True)
    shutil.copy(dist / "postroad-go-0.1.0.zip", proxy / "v0.1.0.zip")
    with zipfile.ZipFile(proxy / "v0.1.0.zip") as archive:
        (proxy / "v0.1.0.mod").write_bytes(archive.read("github.com/postroad/postroad/clients/go@v0.1.0/go.mod"))
    (proxy / "v0.1.0.info").write_text('{"Version": "v0.1.0"}')
    (proxy / "list").write_text("v0.1.0\n")
    code = """package main

import (
	"context"
	"fmt"
	"os"
	"time"

	postroad "github.com/postroad/postroad/clients/go"
)

func main() {
	client, err := postroad.New(os.Args[1], postroad.WithToken(os.Args[2]))
	if err != nil {
		panic(err)
	}
	email := postroad.Email{From: "hello@example.com", To: []string{"you@example.net"}, Subject: "Hello", Text: "Hi."}
	receipt, err := client.Send(context.Background(), email)
	if err != nil {
		panic(err)
	}
	message, err := client.Wait(context.Background(), receipt.ID, 5*time.Minute)
	if err != nil {
		panic(err)
	}
	fmt.Println(message.Status)
}
"""
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "main.go").write_text(code)
    (folder / "go.mod").write_text(
        "module example.com/send\n\ngo 1.19\n\nrequire github.com/postroad/postroad/clients/go v0.1.0\n"
    )
    settings = {
        "GOPROXY": f"file://{tmp_path / 'proxy'}",
        "GONOSUMDB": "*",
        "GOFLAGS": "-mod=mod -modcacherw",
        "GOMODCACHE": str(tmp_path / "modules"),
        "GOCACHE": str(tmp_path / "cache"),
    }
    words = ("go", "run", ".", served["base_url"], served["api_key"])
    assert run(*words, folder=folder, **settings) == "delivered"


def test_the_source_builds_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    run("tar", "--extract", "--file", dist / f"postroad-{VERSION}.tar.gz", "--strip-components=1", folder=tmp_path)
    seconds = run("git", "log", "-1", "--format=%ct", folder=dist)
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "built")
    run(*build, folder=tmp_path, POSTROAD_BUILD_VERSION=VERSION, SOURCE_DATE_EPOCH=seconds)
    (wheel,) = (tmp_path / "built").glob("*.whl")
    assert wheel.read_bytes() == (dist / wheel.name).read_bytes()


@helm_chart.needs_helm
def test_helm_reads_the_chart(dist: Path, tmp_path: Path) -> None:
    assert f"version: {VERSION}" in run(
        str(helm_chart.HELM), "show", "chart", dist / f"postroad-{VERSION}.tgz", folder=tmp_path
    )
