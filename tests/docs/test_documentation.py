"""What the pages promise is tried: examples are sent, commands looked up, tables held against the code.

The service behind it is `postroad dev`, as a reader of the pages would have started it. The codes of docs/errors.md are
held against the code in `tests/test_errors.py`, the commands of docs/commands.md in `tests/cli/test_commands.py`.
"""

import itertools
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click
import httpx
import msgspec
import pytest

import postroad
from clients.conformance import languages
from postroad import cli, config
from postroad.api import emails, monitoring, openapi
from postroad.api import routes as api_routes
from postroad.api.v1 import inbox as v1_inbox
from postroad.cli.framework import lazy_commands
from postroad.model.mail import limits, send_request
from postroad.services.messages import dev_inbox
from tests import test_errors
from tests.cli import cli_runner

ROOT = Path(__file__).parents[2]
API = "".join((ROOT / "docs" / name).read_text() for name in ("api.md", "management.md"))
README = (ROOT / "README.md").read_text()
START = (ROOT / "docs" / "start.md").read_text()
PAGES = [
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "clients/**/*.md",
        "extensions/*/README.md",
        "examples/**/*.md",
        "benchmarks/*.md",
        "tests/**/*.md",
    )
    for path in sorted(ROOT.glob(pattern))
    if "node_modules" not in path.parts
]
EXAMPLE = re.compile(r"<!-- example: (\w+) -->\n```json\n(.*?)\n```", re.DOTALL)
JSON_BLOCK = re.compile(r"```json\n(.*?)\n```", re.DOTALL)
LIBRARY = re.compile(r"<!-- example: library -->\n```python\n(.*?)\n```", re.DOTALL)
SHELL_BLOCK = re.compile(r"```sh\n(.*?)\n```", re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
# Generous, for a machine that is busy with other tests.
TIMEOUT_SECONDS = 600.0
POLL_SECONDS = 0.05
CHANGING = {"id", "created_at", "request_id", "delivered_at", "last_smtp_response"}


@dataclass(frozen=True, slots=True)
class Running:
    """A service as `postroad dev` starts it, and what its `dev.json` says."""

    dev_info: dict[str, Any]

    @property
    def smtp(self) -> tuple[str, str]:
        return self.dev_info["smtp"]["username"], self.dev_info["smtp"]["password"]

    def send(self, body: dict[str, Any], key: str, *, path: str = "/emails") -> httpx.Response:
        secret = self.new_test_key() if "simulate" in body else self.dev_info["api_key"]
        return httpx.post(
            f"{self.dev_info['base_url']}{path}",
            json=body,
            headers={"Authorization": f"Bearer {secret}", "Idempotency-Key": key},
        )

    def new_test_key(self) -> str:
        url, login = self.dev_info["base_url"], self.dev_info["login"]
        token = httpx.post(f"{url}/v1/auth/login", json=login).json()["token"]
        headers = {"Authorization": f"Bearer {token}"}
        made = httpx.post(f"{url}/v1/api-keys", json={"name": "CI", "mode": "test"}, headers=headers)
        return str(made.json()["secret"])

    def read(self, message_id: str) -> httpx.Response:
        return httpx.get(f"{self.dev_info['base_url']}/emails/{message_id}", auth=self.smtp)

    def read_delivered(self, message_id: str) -> dict[str, Any]:
        """The message as it stands when the mailbox simulator has it."""
        give_up_at = time.monotonic() + TIMEOUT_SECONDS
        while (found := self.read(message_id).json())["status"] == "queued":
            assert time.monotonic() < give_up_at, found
            time.sleep(POLL_SECONDS)
        return cast("dict[str, Any]", found)


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("documentation")
    file = folder / ".postroad" / "dev.json"
    with cli_runner.Service("dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0", folder=folder) as service:
        text = service.wait_for(lambda: file.read_text() if file.exists() else None, what="dev.json")
        yield Running(json.loads(text))
        assert service.stop()[0] == 0


def examples(kind: str) -> list[dict[str, Any]]:
    return [json.loads(text) for name, text in EXAMPLE.findall(API) if name == kind]


def shape(value: object) -> object:
    """The members and types of a JSON value."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value).__name__


def steady(value: object) -> object:
    """A JSON value without what differs each time."""
    if isinstance(value, dict):
        return {name: steady(item) for name, item in value.items() if name not in CHANGING}
    return [steady(item) for item in value] if isinstance(value, list) else value


def table(page: str, header: str) -> dict[str, str]:
    """The rows of a table: each name in the first column, and the text of its row."""
    lines = page.split(f"{header}\n", 1)[1].splitlines()
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return {name: row for row in rows for name in CODE.findall(row.split("|")[1])}


def curls() -> list[list[str]]:
    """The `curl` commands of the README, and then of the first steps, as words."""
    blocks = [block.replace("\\\n", " ") for block in SHELL_BLOCK.findall(README + START)]
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line.startswith("curl ")]


def request(words: list[str]) -> httpx.Request:
    """What `curl` would send."""
    values: dict[str, list[str]] = {"-H": [], "-d": [], "url": []}
    rest = iter(words[1:])
    for word in rest:
        if word in values:
            values[word].append(next(rest))
        else:
            assert not word.startswith("-"), word
            values["url"].append(word)
    (url,) = values["url"]
    headers = dict(value.split(": ", 1) for value in values["-H"])
    return httpx.Request("POST" if values["-d"] else "GET", url, headers=headers, content="".join(values["-d"]))


def filled_in(words: list[str], dev: Running, message_id: str = "") -> list[str]:
    """The words with what a reader would put in their place."""
    values = {
        "http://127.0.0.1:8025": dev.dev_info["base_url"],
        "pr_live_…": dev.dev_info["api_key"],
    }
    for written, value in values.items():
        words = [word.replace(written, value) for word in words]
    return [re.sub(r"em_[0-9a-f]{28}", message_id, word) for word in words]


def test_there_are_examples_to_try() -> None:
    assert len(examples("send")) == 4
    assert {name for name, _ in EXAMPLE.findall(API)} == {
        *("send", "batch", "message", "cancellation", "webhook", "delivery", "endpoint", "suppression")
    }


@pytest.mark.parametrize("number", range(len(examples("send"))))
def test_an_example_of_a_send_is_accepted(dev: Running, number: int) -> None:
    answer = dev.send(examples("send")[number], key=f"example {number}")
    assert answer.status_code == 202, answer.text
    assert re.fullmatch(r'"account";r=\d+;t=\d+', answer.headers["RateLimit"])
    assert 'RateLimit: "account";r=199;t=1' in API


@pytest.mark.parametrize("number", range(len(examples("batch"))))
def test_an_example_of_a_batch_is_accepted(dev: Running, number: int) -> None:
    answer = dev.send(examples("batch")[number], key=f"batch {number}", path="/emails/batch")
    assert answer.status_code == 202, answer.text
    assert [list(result) for result in answer.json()["results"]] == [["id"], ["id"]]


def test_the_example_of_a_message_is_what_a_reader_gets_for_the_example_with_a_template(dev: Running) -> None:
    (with_template,) = [example for example in examples("send") if "template" in example]
    shown = dev.read_delivered(dev.send(with_template, key="to be read").json()["id"])
    (example,) = examples("message")
    assert shape(example) == shape(shown)
    assert steady(example) == steady(shown)
    assert list(example) == list(shown)


def test_the_examples_of_a_webhook_are_what_a_reader_gets(dev: Running) -> None:
    (saved,), (pinged,), (created,) = examples("webhook"), examples("delivery"), examples("endpoint")
    with httpx.Client(base_url=dev.dev_info["base_url"]) as client:
        token = client.post("/v1/auth/login", json=dev.dev_info["login"]).json()["token"]
        client.headers["Authorization"] = f"Bearer {token}"
        client.delete("/v1/webhook")
        # Nothing is sent to somebody else's address: the endpoint is the service itself, which answers something.
        answers = [
            client.put("/v1/webhook", json={"url": f"{dev.dev_info['base_url']}/hooks"}),
            client.post("/v1/webhook/ping"),
        ]
        given = {name: created["webhook"][name] for name in ("events", "tags", "sender_domains", "description")}
        answers.append(client.post("/v1/webhooks", json={"url": f"{dev.dev_info['base_url']}/more", **given}))
        client.delete(f"/v1/webhooks/{answers[2].json()['webhook']['id']}")
        client.delete("/v1/webhook")
    for answer, example in zip(answers, (saved, pinged, created), strict=True):
        assert answer.is_success, answer.text
        assert shape(answer.json()) == shape(example)
        assert list(answer.json()) == list(example)
    assert len(answers[0].json()["secret"]) == len(saved["secret"])
    assert saved["webhook"]["secret_hint"] == f"whsec_…{saved['secret'][-4:]}"
    dev_info, shown = (json.loads(one["delivery"]["request_body"]) for one in (answers[1].json(), pinged))
    assert steady(dev_info) == steady(shown)
    assert shown["id"] == pinged["delivery"]["event_id"]


def test_the_example_of_a_suppression_is_what_a_reader_gets(dev: Running) -> None:
    (shown,) = examples("suppression")
    wanted = {name: shown["suppression"][name] for name in ("email", "reason")}
    with httpx.Client(base_url=dev.dev_info["base_url"]) as client:
        token = client.post("/v1/auth/login", json=dev.dev_info["login"]).json()["token"]
        client.headers["Authorization"] = f"Bearer {token}"
        answers = [client.post("/v1/suppressions", json=wanted), client.post("/v1/suppressions", json=wanted)]
        client.delete("/v1/suppressions/ada%40example.net").raise_for_status()
    assert [answer.status_code for answer in answers] == [201, 409]
    assert steady(answers[0].json()) == steady(shown)
    assert list(answers[0].json()["suppression"]) == list(shown["suppression"])


def test_the_example_of_a_simulated_provider_is_delivered_after_it_was_deferred(dev: Running) -> None:
    ((name, text),) = EXAMPLE.findall((ROOT / "docs" / "testing.md").read_text())
    assert name == "simulate"
    answer = dev.send(json.loads(text), key="simulated")
    assert (answer.status_code, answer.json()["test"]) == (202, True)
    found = dev.read_delivered(answer.json()["id"])
    assert (found["status"], found["recipients"][0]["attempt_count"]) == ("delivered", 3)


def test_the_examples_of_the_openapi_document_are_accepted_too(dev: Running) -> None:
    answers = [dev.send(body, key=f"document {n}") for n, body in enumerate(emails.SEND_EXAMPLES)]
    assert [answer.status_code for answer in answers] == [202] * len(answers), [answer.text for answer in answers]


def test_the_table_of_members_names_those_of_the_schema_and_no_other() -> None:
    rows = table(API, "| Member | Rules |\n|---|---|")
    assert set(rows) == {field.encode_name for field in msgspec.structs.fields(send_request.SendRequest)}
    assert {field.encode_name for field in msgspec.structs.fields(send_request.Attachment)} <= set(
        CODE.findall(rows["attachments"])
    )


def test_the_numbers_of_the_table_are_the_limits() -> None:
    rows = table(API, "| Member | Rules |\n|---|---|")
    assert f"At most {limits.UNIQUE_RECIPIENTS} unique addresses" in rows["to"]
    assert f"1 to {limits.SUBJECT_CHARACTERS} characters" in rows["subject"]
    assert f"up to {limits.VARIABLES} values" in rows["variables"]
    assert f"Up to {limits.CUSTOM_HEADERS} custom headers" in rows["headers"]
    assert f"names of up to {limits.HEADER_NAME_CHARACTERS} characters" in rows["headers"]
    assert f"{limits.HEADER_LINE_OCTETS} bytes with name and value" in rows["headers"]
    assert f"1 to {limits.TAG_CHARACTERS} characters" in rows["tags"]
    assert f"1 to {limits.FILENAME_CHARACTERS} characters" in rows["attachments"]
    assert f"up to {limits.TAGS}." in rows["tags"]
    assert f"Up to {limits.ATTACHMENTS}." in rows["attachments"]
    usual = config.load(environment={}, overrides={}).limits
    assert f"{usual.request_rate} sends a second for each account, {usual.request_burst} at once" in API


def anchors(page: Path) -> set[str]:
    """What a link may name behind the '#': the titles, as GitHub makes names of them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def test_every_link_into_a_page_leads_to_a_title() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {name}#{anchor}"
        for page in PAGES
        for name, anchor in re.findall(r"\]\(([^)\s:#]*)#([^)\s]+)\)", page.read_text())
        if anchor not in anchors(page.parent / name if name else page)
    ]
    assert broken == []


def test_every_page_is_found_from_the_readme() -> None:
    assert [path.name for path in sorted(ROOT.glob("docs/*.md")) if f"(docs/{path.name})" not in README] == []


def test_every_endpoint_is_mentioned_with_its_method_and_no_other() -> None:
    mail = dev_inbox.Inbox(clock=lambda: 0, entropy=bytes)
    routes = (*api_routes.ROUTES, *v1_inbox.routes(mail), *monitoring.health_routes(lambda: False))
    described = openapi.document(routes, version=postroad.__version__)["paths"]
    endpoints = {f"{method.upper()} {path}" for path, item in described.items() for method in item}
    mentioned = {code for code in CODE.findall(API) if re.fullmatch(r"[A-Z]+ /\S+", code)}
    assert mentioned == endpoints


def test_the_commands_of_the_readme_and_the_first_steps_work_as_they_are_printed(dev: Running) -> None:
    sending, reading = curls()
    with httpx.Client() as client:
        answer = client.send(request(filled_in(sending, dev)))
        assert answer.status_code == 202, answer.text
        printed = json.loads(JSON_BLOCK.findall(README)[0].replace(", …}", "}"))
        assert steady(printed).items() <= answer.json().items()  # type: ignore[attr-defined]
        shown = client.send(request(filled_in(reading, dev, answer.json()["id"])))
        assert (shown.status_code, shown.json()["id"]) == (200, answer.json()["id"])


def test_the_library_of_the_first_steps_sends_another_mail_than_the_first_command(dev: Running) -> None:
    with httpx.Client() as client:
        sent = client.send(request(filled_in(curls()[0], dev)))
    assert sent.status_code == 202, sent.text
    program = filled_in(LIBRARY.findall(START), dev)
    printed = subprocess.run(
        [sys.executable, "-c", *program], env=languages.environment(), capture_output=True, text=True, check=True
    ).stdout
    assert re.fullmatch(r"em_[0-9a-f]{28}\n", printed)
    assert printed.strip() != sent.json()["id"]


def test_the_example_of_a_refusal_is_a_real_one(dev: Running) -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    (shown,) = [block for block in map(json.loads, JSON_BLOCK.findall(text)) if "error" in block]
    place = int(re.findall(r"to\[(\d)\]", shown["error"])[0])
    body = examples("send")[0] | {"to": [*["ada@example.net"] * place, "bob@"]}
    refused = dev.send(body, key="refused").json()
    assert list(shown) == list(refused)
    assert (shown["error"], shown["code"]) == (refused["error"], refused["code"])
    assert f"`{shown['error']}`" in README or "to[3]" not in shown["error"]


def test_every_code_that_a_page_names_exists() -> None:
    named = set(re.findall(r"\b[45]\d\d `(\w+)`", API + README))
    assert named <= test_errors.by_code().keys()


def commands(path: Path) -> list[str]:
    return [code for code in CODE.findall(path.read_text()) if re.match(r"postroad [a-z]", code)]


@pytest.mark.parametrize("path", [path for path in PAGES if commands(path)], ids=lambda path: path.name)
def test_every_command_that_a_page_names_exists(path: Path) -> None:
    for written in commands(path):
        found: click.Command = cli.main
        for word in shlex.split(written)[1:]:
            if word.startswith("-"):
                assert word in {option for one in found.get_params(click.Context(found)) for option in one.opts}
            elif isinstance(found, click.Group):
                command = found.get_command(click.Context(found), word)
                assert command is not None, written
                found = command
                found = found.load() if isinstance(found, lazy_commands.LazyCommand) else found
