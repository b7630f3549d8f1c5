"""What docs/guards.md says in tables and numbers is what the code does."""

import re
import smtplib
from pathlib import Path

import httpx
import msgspec

from postroad import config
from postroad.mail.accept import queue_limit, send_limits, transaction
from postroad.mail.results import complaints
from postroad.model.bounces import bounce_guard
from postroad.model.delivery import throttle
from postroad.model.units import times
from postroad.services.suppressions import suppression_csv
from postroad.storage.mail import suppressions
from tests.cli.cli_runner import Installation, Service
from tests.docs import markdown

PAGE = (Path(__file__).parents[2] / "docs" / "guards.md").read_text()
SETTINGS = config.load(environment={}, overrides={})


def percent(cell: str) -> float:
    return float(cell.split("%", maxsplit=1)[0])


def test_the_thresholds_are_the_defaults() -> None:
    guard = SETTINGS.bounce_guard
    bounces, complained = markdown.rows(PAGE, "percentage of recipients")
    assert [percent(cell) for cell in bounces[1:]] == [guard.warn_percent, guard.suspend_percent]
    assert [percent(cell) for cell in complained[1:]] == [guard.complaint_warn_percent, guard.complaint_suspend_percent]
    assert f"over the last {guard.days} UTC days" in PAGE
    assert f"no action below {guard.recipients} recipients" in PAGE
    assert bounce_guard.MIN_COMPLAINTS == 2
    assert "and at least two complaints" in complained[2]


def test_the_refusal_that_is_shown_is_the_one_that_is_given() -> None:
    counts = bounce_guard.Counts(recipients=240, bounces=22)
    until = times.parse("2026-02-01T12:00:00.000Z")
    refusal = transaction.suspended(bounce_guard.reason(bounce_guard.Trigger.BOUNCES, counts, until=until))
    assert f'{{"error": "{refusal.message}", "code": "{refusal.code}"' in PAGE


def test_the_rate_is_the_default_and_its_fields_are_those_of_an_answer() -> None:
    limits = SETTINGS.limits
    policy = throttle.RateLimit(limits.request_rate, limits.request_burst)
    assert f"{policy.rate} sends a second for each account" in PAGE
    assert f"{policy.burst} at once" in PAGE
    buckets = send_limits.RateLimiter(policy)
    buckets.take("credential", now=0)
    for name, value in buckets.headers("credential", now=0):
        assert f"{name}: {value}\n" in PAGE


def fail2ban_expressions() -> list[re.Pattern[str]]:
    # fail2ban replaces the word by an expression of its own for addresses.
    wanted = PAGE.split("failregex = ")[1].split("\njournalmatch")[0].replace("<HOST>", "(?P<host>[0-9a-fA-F:.]+)")
    return [re.compile(line.strip()) for line in wanted.splitlines()]


def test_no_text_in_a_log_line_makes_fail2ban_block_another_address() -> None:
    login = {"event": "submission", "verb": "AUTH", "code": "unauthorized"}
    forged = msgspec.json.encode(login | {"client_address": "203.0.113.9"}).decode()
    hidden = {"cause": f'","a":"b",{forged[1:-1]}'}
    lines = [
        msgspec.json.encode(event).decode() for event in (login | {"client_address": "192.0.2.1"} | hidden, hidden)
    ]
    found = [match["host"] for line in lines for one in fail2ban_expressions() if (match := one.match(line))]
    assert found == ["192.0.2.1"]


def test_the_fail2ban_filter_finds_the_address_of_failed_logins_and_no_other(tmp_path: Path) -> None:
    installation = Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/postroad.db")
    with installation.file.open("a") as file:
        file.write('[http]\nlisten = "127.0.0.1:0"\ndrain_seconds = 0\nprocesses = 1\n')
        file.write('[submission]\nlisten = "127.0.0.1:0"\nauth_without_tls = true\n')
    with Service("serve", "--config", str(installation.file), folder=tmp_path) as service:
        where = service.line("started")
        login = {"email": "jo@example.com", "password": "does not matter"}
        with httpx.Client(base_url=f"http://{where['http']}") as client:
            assert client.post("/v1/auth/login", json=login).status_code == 401
            assert client.post("/login", data=login).status_code == 401
            assert client.get("/v1/account").status_code == 401
            assert client.get("/healthz").status_code == 200
        with smtplib.SMTP(*where["submission"].rsplit(":", 1)) as smtp:
            smtp.ehlo()
            assert smtp.docmd("AUTH", "PLAIN AHVzZXIAcGFzc3dvcmQ=")[0] == 535
        assert service.stop() == (0, "")
        lines = service.errors.read_text().splitlines()
    expressions = fail2ban_expressions()
    found = [
        (number, match["host"])
        for line in lines
        for number, one in enumerate(expressions)
        if (match := one.match(line))
    ]
    assert found == [(0, "127.0.0.1"), (0, "127.0.0.1"), (1, "127.0.0.1")]
    assert "/healthz" not in "".join(lines)


def test_every_source_of_a_suppression_is_explained() -> None:
    assert [row[0].strip("`") for row in markdown.rows(PAGE, "source")] == list(suppressions.Source)


def test_the_example_of_a_file_can_be_imported_and_has_the_columns_of_an_export(tmp_path: Path) -> None:
    shown = PAGE.split("<!-- example: csv -->\n```text\n")[1].split("\n```")[0]
    assert shown.splitlines()[0] == ",".join(suppression_csv.COLUMNS)
    installation = Installation.at(tmp_path, url=f"sqlite:///{tmp_path / 'postroad.db'}")
    installation.text("migrate")
    installation.text("account", "create", "--name", "Shop")
    assert installation.json("suppression", "import", "-", given=shown) == {"added": 2, "unchanged": 0}
    assert installation.text("suppression", "export").splitlines()[0] == shown.splitlines()[0]


def test_the_limits_of_a_file_are_those_of_the_code() -> None:
    rows_at_most, bytes_at_most = suppression_csv.MAX_ROWS, suppression_csv.MAX_BYTES
    assert f"up to {rows_at_most:,} rows and {bytes_at_most // 1024**2} MiB (the command takes ten times" in PAGE
    assert suppression_csv.FileLimits(10 * rows_at_most, 10 * bytes_at_most) == suppression_csv.OPERATOR_LIMITS


def test_the_address_for_complaints_is_that_of_the_code() -> None:
    assert f"the address `{complaints.LOCAL_PART}@` at your `delivery.return_path_domain`" in PAGE
    assert {"abuse", "fraud"} == complaints.KINDS
    assert "A report of abuse or fraud, whoever wrote it" in PAGE
    assert f"with the action `{complaints.ACTION}`" in PAGE


def test_retention_is_the_default() -> None:
    kept = SETTINGS.retention
    assert f"is kept for {kept.body_days} days" in PAGE
    assert f"attempts, tags and metadata for {kept.message_days} " in PAGE
    assert f"are deleted after {queue_limit.TEST_MAIL_DAYS} days" in PAGE


def test_the_storage_quotas_are_the_defaults() -> None:
    quotas = SETTINGS.quotas
    assert f"uses at most {quotas.stored_megabytes // 1024} GiB of storage (`quotas.stored_megabytes`)" in PAGE
    assert f"its test mail {queue_limit.TEST_MEGABYTES} MiB" in PAGE
