"""The programs of the keys page: run as they are copied, with the libraries in this repository.

Each is run in a folder beside a checkout, once against a real service, and once against a server that refuses
everything: it shows that values arrive as they are, whatever is in them.
"""

import contextlib
import dataclasses
import functools
import http.server
import json
import pathlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pytest

from clients.conformance import languages
from postroad.dashboard.framework import literals, snippets
from tests.cli import cli_runner
from tests.cli.test_dev import handover
from tests.clients.test_conformance import language
from tests.submission.test_clients import Running

QUEUED: Final = re.compile(r"em_[0-9a-f]{28}\n")
# All of it may stand in an address without quotes.
AWKWARD: Final = "o'b#{x}$x${x}`id`%s{{}}"
# What ends a string, begins an escape, or is a value inside of a string in one language or another.
HOSTILE: Final = AWKWARD + '"\\" \\n \\u0022 \\\\u0022 \\\' #{abort} {$x} $(id) */ ?> \u00e9 \u2028 \ufeff \U0001f4ee'
# Every member that a message can be copied with.
EMAIL: Final[literals.Members] = {
    "from": f"from {HOSTILE}",
    "to": [f"to {HOSTILE}", "bob@example.net"],
    "cc": [f"cc {HOSTILE}"],
    "bcc": [f"bcc {HOSTILE}"],
    "reply_to": HOSTILE,
    "subject": HOSTILE,
    "text": f"first\n\tsecond {HOSTILE}\n",
    "html": f"<p class='x'>{HOSTILE}</p>\n",
    "template": HOSTILE,
    "variables": {"name": HOSTILE, "is_new": True, "is_old": False, "items": [{"title": HOSTILE, "tags": ["a"]}]},
    "headers": {"X-One": HOSTILE, "X-Two": "2"},
    "tags": [HOSTILE, "two"],
    "metadata": {"order": HOSTILE, "two": "2"},
}
TOKEN: Final = f'{AWKWARD}"\\u0022'
ROOT: Final = pathlib.Path(__file__).parents[2]
SOURCES: Final = {source.title: source for source in snippets.sources().http}


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """How a reader would run a text, in a folder beside the checkout; `prepare` is what was done there before."""

    language: str
    file: str
    command: tuple[str, ...]
    prepare: Callable[[pathlib.Path], None] = lambda _: None


def _node_modules(folder: pathlib.Path) -> None:
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "postroad").symlink_to(ROOT / "clients" / "javascript")


def _vendor(folder: pathlib.Path) -> None:
    (folder / "vendor").mkdir()
    text = "<?php require __DIR__ . '/../../postroad/clients/php/src/autoload.php';\n"
    (folder / "vendor" / "autoload.php").write_text(text)


def _module(folder: pathlib.Path) -> None:
    for command in ("go mod init example.com/shop", SOURCES["Go"].install):
        subprocess.run(["sh", "-ec", command], cwd=folder, env=languages.environment(), check=True)


def _classes(folder: pathlib.Path) -> None:
    command = ["sh", "../postroad/clients/java/build.sh", "classes"]
    subprocess.run(command, cwd=folder, env=languages.environment(), check=True)


# A program that runs for a moment is not worth optimising.
JAVA_OPTIONS: Final = ("-XX:-UsePerfData", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
PROGRAMS: Final = {
    "Python": Program("python", "hello.py", (sys.executable, "hello.py")),
    "JavaScript": Program("javascript", "hello.mjs", ("node", "hello.mjs"), _node_modules),
    "PHP": Program("php", "hello.php", ("php", "hello.php"), _vendor),
    "Go": Program("go", "hello.go", ("go", "run", "hello.go"), _module),
    "Ruby": Program("ruby", "hello.rb", ("ruby", "-w", "-I../postroad/clients/ruby/lib", "hello.rb")),
    "Java": Program("java", "Hello.java", ("java", *JAVA_OPTIONS, "-cp", "classes", "Hello.java"), _classes),
}
EVERY_PROGRAM = pytest.mark.parametrize("title", list(PROGRAMS))


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], pathlib.Path]:
    """The folder in which a program runs, made once."""

    @functools.cache
    def folder(title: str) -> pathlib.Path:
        program = PROGRAMS[title]
        language(program.language)
        beside = tmp_path_factory.mktemp(program.language)
        (beside / "postroad").symlink_to(ROOT)
        (beside / "shop").mkdir()
        program.prepare(beside / "shop")
        return beside / "shop"

    return folder


def run(title: str, folder: pathlib.Path, shown: Sequence[snippets.Snippet]) -> subprocess.CompletedProcess[str]:
    program = PROGRAMS[title]
    (text,) = [one.text for one in shown if one.title == title]
    (folder / program.file).write_text(text)
    return subprocess.run(
        program.command,
        cwd=folder,
        # Java would say on stderr that it has heard of them.
        env={name: value for name, value in languages.environment().items() if name != "JAVA_TOOL_OPTIONS"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=cli_runner.TIMEOUT_SECONDS,
    )


def place_at(base_url: str, *, recipient: str, sender: str = "hello@example.com") -> snippets.SnippetContext:
    return snippets.SnippetContext(base_url=base_url, smtp=None, sender=sender, recipient=recipient)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """`postroad dev` as it comes."""
    folder = tmp_path_factory.mktemp("libraries")
    with cli_runner.Service("dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0", folder=folder) as service:
        yield Running(service, handover(service, folder), folder / "no-authority.pem")
        assert service.stop()[0] == 0


@contextlib.contextmanager
def refusing() -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The address of a server that says no, and what it was asked."""
    asked: list[Mapping[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append({**body, "path": self.path, "authorization": self.headers["Authorization"]})
            answer = json.dumps({"error": "not today", "code": "forbidden", "request_id": "req_1"}).encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = False  # the end waits for those that still close their connections
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_every_library_has_a_program_and_curl_comes_first() -> None:
    assert list(SOURCES) == ["curl", *PROGRAMS]
    assert {program.language for program in PROGRAMS.values()} == {one.folder for one in languages.LANGUAGES}


@EVERY_PROGRAM
def test_a_program_sends_a_mail_and_prints_its_id(
    title: str, running: Running, folder_of: Callable[[str], pathlib.Path]
) -> None:
    recipient = f"{PROGRAMS[title].language}.{AWKWARD}@clients.test"
    place = place_at(running.dev_info["base_url"], recipient=recipient)
    ended = run(title, folder_of(title), snippets.over_http(place, api_key=running.dev_info["api_key"]))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert QUEUED.fullmatch(ended.stdout), ended.stdout
    assert running.arrived(recipient)["Subject"] == "Hello"


@EVERY_PROGRAM
def test_a_program_passes_values_on_as_they_are_and_fails_with_what_is_wrong(
    title: str, folder_of: Callable[[str], pathlib.Path]
) -> None:
    with refusing() as (base_url, asked):
        ended = run(title, folder_of(title), snippets.of_email(f"{base_url}/o'b/$x", EMAIL, api_key=TOKEN))
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    assert "403 forbidden: not today (req_1)" in ended.stderr
    (request,) = asked
    assert (request["path"], request["authorization"]) == ("/o'b/$x/emails", f"Bearer {TOKEN}")
    arrived = {name: [request[name]] if isinstance(request[name], str) else request[name] for name in EMAIL}
    assert arrived == {name: [value] if isinstance(value, str) else value for name, value in EMAIL.items()}


def test_go_is_written_as_gofmt_writes_it() -> None:
    language("go")
    (text,) = [
        one.text
        for one in snippets.over_http(place_at("https://mail.example.com", recipient=HOSTILE))
        if one.title == "Go"
    ]
    formatted = subprocess.run(["gofmt"], input=text, capture_output=True, text=True, check=True).stdout
    assert formatted == text


def test_what_is_installed_is_in_the_repository() -> None:
    for title, program in PROGRAMS.items():
        source, folder = SOURCES[title], languages.CLIENTS / program.language
        (named,) = set(re.findall(r"\.\./postroad/clients/(\w+)", source.install))
        assert named == folder.name
        readme = (folder / "README.md").read_text()
        assert all(package in readme for package in re.findall(r"\S+:(?:\d+\.\d+\.\d+|@dev)", source.install))
