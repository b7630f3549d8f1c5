"""A company that sells no mail: it sets up Postroad, sends, and never meets a credit.

Every page that a new owner and operator can reach is opened, by the links that the pages have.
"""

import dataclasses
import html.parser
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib import parse

import httpx
import pytest

from postroad import config
from tests.cli import cli_runner

WORDS = re.compile(r"credits?\b|balances?\b|ledger|refund|unlimited", re.IGNORECASE)
# No port leads anywhere: names are asked for at a closed one.
ENVIRONMENT = {
    "POSTROAD_HTTP__LISTEN": "127.0.0.1:0",
    "POSTROAD_HTTP__BASE_URL": "",
    "POSTROAD_HTTP__DRAIN_SECONDS": "0",
    "POSTROAD_INBOUND__LISTEN": "",
    "POSTROAD_DELIVERY__RESOLVERS": "127.0.0.1:9",
    "POSTROAD_LIMITS__API_RATE": "1000",
}
# The documents describe every installation; files are downloads of what pages show.
ELSEWHERE = ("/assets/", "/docs", "/openapi", "/reference", "/live")
MAX_PAGES = 400


class Text(html.parser.HTMLParser):
    """What people see of a page, and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: set[str] = set()
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in {"script", "style"}
        for name, value in attrs:
            if tag == "a" and name == "href" and (value or "").startswith("/"):
                self.links.add((value or "").partition("#")[0])
            if name in {"title", "placeholder", "aria-label", "alt", "data-label"}:
                self.words.append(value or "")
        if ("name", "question") in attrs:
            self.words.append(dict(attrs)["value"] or "")

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.words.append(data)


def read(page: str) -> Text:
    text = Text()
    text.feed(page)
    return text


@dataclasses.dataclass(frozen=True)
class Company:
    """An installation as `init` left it, what that printed, and its running service."""

    installation: cli_runner.Installation
    questions: str
    printed: str
    link: str
    url: str
    service: cli_runner.Service


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """Set up at a terminal, where Enter answers what has a default; then served."""
    folder = tmp_path_factory.mktemp("company")
    file = folder / "etc" / "postroad.toml"
    ours, theirs = os.openpty()
    try:
        os.write(ours, b"mail.example.com\n\nShop\n\nada@example.com\nproxy\n\n")
        result = subprocess.run(
            [sys.executable, "-m", "postroad", "init", "--config", str(file), "--data", str(folder / "data")],
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=cli_runner.TIMEOUT_SECONDS,
            check=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    installation = cli_runner.Installation(file)
    questions, _, printed = result.stdout.partition("Created: ")
    link = re.findall(r"https://mail\.example\.com(/password/\S+)", printed)[0]
    with cli_runner.Service(
        "serve", "--config", str(file), "--role", "api", folder=folder, environment=ENVIRONMENT
    ) as service:
        url = f"http://{service.line('started')['http']}"
        yield Company(installation, questions, printed, link, url, service)
        assert service.stop() == (0, "")


def test_init_asks_whether_mail_is_sold_and_enter_says_no(company: Company) -> None:
    assert company.questions.endswith(
        "Do you sell mail to others? If so, each recipient costs the account one credit [y/N]: "
    )
    text = company.installation.file.read_text()
    assert "[credits]\n" in text
    assert not config.load(company.installation.file, environment={}).credits.enabled
    assert WORDS.search(company.printed) is None
    assert "Next: publish these DNS records, start the service" in company.printed


@pytest.mark.parametrize("words, is_on", [((), False), (("--credits", "off"), False), (("--credits", "on"), True)])
def test_without_questions_credits_are_off_unless_they_are_asked_for(
    tmp_path: Path, words: tuple[str, ...], *, is_on: bool
) -> None:
    file = tmp_path / "postroad.toml"
    answers = "--hostname mail.example.com --account Shop --domain example.com --email ada@example.com".split()
    again = ("init", "--yes", "--config", str(file), "--data", str(tmp_path / "data"), *answers)
    assert cli_runner.run(*again, *words).exit_code == 0
    assert config.load(file, environment={}).credits.enabled is is_on
    other = cli_runner.sentence(cli_runner.run(*again, "--credits", "off" if is_on else "on"))
    assert other == f"--credits: {file} exists and has another value; change it there"


def test_commands_say_nothing_of_credits_and_refuse_to_add_some(company: Company) -> None:
    run = company.installation
    shown = [
        run.text("account", "list"),
        run.text("account", "show", "Shop"),
        run.text("account", "create", "--name", "Second"),
        run.text("verify"),
    ]
    assert WORDS.search("".join(shown)) is None
    assert shown[0].split("\n")[0].split() == ["ID", "NAME", "STATUS"]
    off = "credits are off (credits.enabled in the settings): mail costs nothing; nothing was changed"
    assert run.refusal("credits", "add", "--account", "Shop", "--amount", "5") == off
    assert run.refusal("credits", "unlimited", "--account", "Shop", "on") == off


def test_nobody_meets_a_credit_on_any_page_before_or_after_the_first_mail(company: Company) -> None:
    run = company.installation
    with httpx.Client(base_url=company.url, headers={"Accept": "text/html"}, timeout=600) as browser:
        entered = browser.post(company.link, data={"password": "a long passphrase 7431"})
        assert entered.status_code == 303
        new = walk(browser)
        assert {"/", "/welcome", "/domains", "/keys", "/operator", "/operator/accounts"} <= set(new)
        run.text("domain", "verify", "example.com", "--account", "Shop")
        run.text("suppression", "add", "bob@example.net", "--account", "Shop")
        run.text("template", "put", "welcome", "--account", "Shop", "--subject", "Hello", "--text", "Hello {{name}}")
        made = run.json("credential", "create", "--account", "Shop", "--name", "App")["credential"]
        login = (made["username"], made["password"])
        # The service notices within a second or two that the domain may send now.
        sent = company.service.wait_for(lambda: send(company, login), what="the first mail")
        # The contract's fields stay.
        assert sent["credits_reserved"] == 0
        message = f"/messages/{sent['id']}"
        seen = walk(browser)
        assert {message, "/suppressions", "/templates/welcome", "/recipients/ada%40example.net"} <= set(seen)
        assert "1 recipient queued." in seen["/"]
        for path in ("/credits", "/credits/ledger.csv"):
            missing = browser.get(path)
            assert (missing.status_code, WORDS.search(" ".join(read(missing.text).words))) == (404, None)
    state = httpx.get(f"{company.url}/emails/{sent['id']}", auth=login, timeout=600).json()
    assert (state["billing_status"], state["credits_reserved"]) == ("reserved", 0)


def send(company: Company, login: tuple[str, str]) -> dict[str, Any] | None:
    """Send a mail; None while the domain may not."""
    answer = httpx.post(
        f"{company.url}/emails",
        auth=login,
        headers={"Idempotency-Key": "first-mail"},
        json={"from": "hello@example.com", "to": "ada@example.net", "subject": "Hello", "text": "It works."},
        timeout=600,
    )
    assert answer.status_code in {202, 403}, answer.text
    return answer.json() if answer.status_code == 202 else None


def walk(browser: httpx.Client) -> dict[str, str]:
    """The text of every page that links lead to. A page is opened once, whatever its parameters are."""
    seen: dict[str, str] = {}
    waiting = ["/", "/operator", "/find?q=credits", "/find?q=a", "/profile/security", "/team/roles"]
    while waiting and len(seen) < MAX_PAGES:
        path = waiting.pop(0)
        name = parse.urlsplit(path).path
        if name in seen and "?q=" not in path:
            continue
        answer = browser.get(path)
        if answer.status_code != 200 or not answer.headers["content-type"].startswith("text/html"):
            assert answer.status_code < 500, (path, answer.text)
            seen[name] = ""
            continue
        page = read(answer.text)
        text = " ".join(" ".join(page.words).split())
        found = WORDS.search(text.replace('q="credits"', "").replace("Search messages: credits", ""))
        assert found is None, (path, text[max(0, found.start() - 80) : found.end() + 80])
        seen[name] = text
        waiting += sorted(link for link in page.links if not link.startswith(ELSEWHERE))
    return seen
