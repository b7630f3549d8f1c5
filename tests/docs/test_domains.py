"""What docs/domains.md shows of a check is what the command prints; its tables are those of the code."""

import re
from pathlib import Path

import msgspec
import pytest

from postroad import config
from postroad.api.v1 import domains
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records, warmup
from postroad.model.reports import dmarc_readiness, dmarc_rows
from postroad.model.units import times
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import received_reports
from postroad.services.operations import cleanup
from tests import dns_server
from tests.cli.cli_runner import Installation
from tests.cli.test_domains import server
from tests.docs import markdown

__all__ = ["server"]

PAGE = (Path(__file__).parents[2] / "docs" / "domains.md").read_text()
UNITS = {
    "minute": domain_records.MINUTE,
    "hour": times.HOUR,
    "day": times.DAY,
    "week": domain_records.LONG_UNVERIFIED_CHECK_INTERVAL,
}
CAPS = config.load(environment={}, overrides={}).warmup.recipients_per_day


def time_in(text: str) -> int:
    """The time that a cell names: 5 minutes, an hour, every day."""
    found = re.search(r"(\d+|an?|every) (minute|hour|day|week)", text)
    assert found, text
    return (int(found[1]) if found[1].isdigit() else 1) * UNITS[found[2]]


def without_keys(text: str) -> list[str]:
    """Lines without what is made by chance."""
    text = re.sub(r"dom_[0-9a-f]{28}", "dom_", text)
    return re.sub(r"p[re][a-z0-9]{8}(\._domainkey.*?p=)[^)]*\)", r"\1)", text).strip().splitlines()


@pytest.fixture
def installation(tmp_path: Path, server: dns_server.DnsServer) -> Installation:
    """The service of the page, whose host is mail.example.net, and an account."""
    made = Installation.at(tmp_path, url=f"sqlite:///{tmp_path / 'postroad.db'}")
    with made.file.open("a") as file:
        file.write(f'[delivery]\nhostname = "mail.example.net"\nresolvers = ["{server.address}"]\n')
    made.text("migrate")
    made.text("account", "create", "--name", "Shop")
    return made


def test_the_example_of_a_check_is_what_the_command_prints(
    installation: Installation, server: dns_server.DnsServer
) -> None:
    server.zones["bounces.example.com"] = {
        "TXT": ['"v=spf1 include:_spf.example.org ~all"'],
        "MX": ["10 mx.example.org."],
    }
    server.zones["_spf.example.org"] = {"TXT": ['"v=spf1 ip4:192.0.2.0/24 ~all"']}
    installation.text("domain", "add", "example.com")
    result = installation.run("domain", "check", "example.com")
    shown = PAGE.split("<!-- example: check -->\n```text\n")[1].split("\n```")[0]
    assert without_keys(shown) == without_keys(result.stdout)
    assert result.exit_code == 1


def test_the_table_of_records_is_what_a_new_domain_shows(installation: Installation) -> None:
    records = installation.json("domain", "add", "example.com")["domain"]["records"]
    shown = {row[0].strip("`"): [cell.strip("`") for cell in row[1:4]] for row in markdown.rows(PAGE, "record")}
    assert list(shown) == [record["purpose"] for record in records]
    for record in records[1:-1]:
        assert shown[record["purpose"]] == [record["name"], record["type"], record["value"]]
    assert re.fullmatch(r"pr[a-z0-9]{8}\._domainkey\.example\.com", records[0]["name"])
    assert re.fullmatch(r"pr[a-z0-9]{8}\._domainkey\.example\.com", shown["dkim"][0])
    assert records[0]["value"].startswith(shown["dkim"][2].rstrip("…"))
    assert re.fullmatch(r"pe[a-z0-9]{8}\._domainkey\.example\.com", shown["dkim_ed25519"][0])
    assert shown["dkim_ed25519"][2].startswith("v=DKIM1; k=ed25519; p=")
    assert records[-1]["value"].startswith("v=DKIM1; k=ed25519; p=")
    assert [record["purpose"] for record in records if record["required"]] == ["dkim", "spf", "return_path"]
    assert (
        "`dkim`, `spf` and `return_path` are required, `dmarc` is recommended, and `dkim_ed25519` is optional." in PAGE
    )


def test_every_purpose_is_named() -> None:
    named = set(markdown.CODE.findall(PAGE))
    assert set(domain_records.RecordPurpose) <= named
    settings = config.load(environment={}, overrides={}).domains
    assert f"published for {domain_keys.OVERLAP_DAYS} days" in PAGE
    assert f"when they are {settings.key_rotation_days} days old (`domains.key_rotation_days`)" in PAGE


def test_every_state_is_explained() -> None:
    assert [row[0].strip("`") for row in markdown.rows(PAGE, "state")] == list(domain_records.RecordState)


def test_the_table_of_questions_is_the_schedule() -> None:
    table = markdown.rows(PAGE, "a domain that is")
    hours = config.load(environment={}, overrides={}).domains.check_hours
    young = [(time_in(row[0]), time_in(row[1])) for row in table[: len(domain_records.UNVERIFIED_CHECK_INTERVALS)]]
    assert young == list(domain_records.UNVERIFIED_CHECK_INTERVALS)
    old, verified, failing = table[len(domain_records.UNVERIFIED_CHECK_INTERVALS) :]
    assert time_in(old[1]) == domain_records.LONG_UNVERIFIED_CHECK_INTERVAL
    assert time_in(verified[1]) == hours * times.HOUR
    assert time_in(failing[1]) == domain_records.FAILING_CHECK_INTERVAL
    assert f"for {domain_records.FAILING_CHECK_PERIOD // times.DAY} days" in failing[1]
    assert f"sending for {domain_records.GRACE_PERIOD // times.HOUR} hours" in PAGE
    assert f"once in {domain_checks.MIN_CHECK_INTERVAL_SECONDS} seconds" in PAGE


def test_the_table_of_days_is_the_warm_up() -> None:
    (days,) = re.findall(r"(?m)^\| day \| (.*) \|$", PAGE)
    assert days.split(" | ") == [*(str(day) for day in range(1, len(CAPS) + 1)), "after that"]
    ((_, *caps, last),) = markdown.rows(PAGE, "day")
    assert [int(cap.replace(",", "")) for cap in caps] == list(CAPS)
    assert last == "no limit"


def test_the_example_of_a_warm_up_is_one_that_can_be() -> None:
    found = re.search(r'```json\n(\{"used".*?\})\n```', PAGE)
    assert found
    shown = msgspec.json.decode(found[1], type=domains.Warmup, strict=True)
    state = warmup.State(day=0, step=0, used=shown.used)
    view = warmup.view(state, CAPS)
    assert (shown.used, shown.cap, shown.tomorrow) == (view.used, view.cap, view.tomorrow)
    assert found[1].count('"') == 2 * len(msgspec.structs.fields(domains.Warmup)) + 2


def test_the_rule_of_the_verdict_and_the_limits_of_reports_are_those_of_the_code() -> None:
    about = PAGE[PAGE.index("## Reports") : PAGE.index("## Check a domain")]
    assert f"in the last {dmarc_readiness.WINDOW_DAYS} days" in about
    assert f"about {dmarc_readiness.MIN_DAYS} days or more" in about
    assert f"{dmarc_readiness.MIN_PASSED} messages or more that passed" in about
    assert f"the last {dmarc_rows.MAX_AGE_DAYS} days" in about
    most, unproven = received_reports.MAX_REPORTS[True], received_reports.MAX_REPORTS[False]
    assert f"{most:,} reports a day, and {unproven} that are not authenticated" in about
    assert f"{received_reports.MAX_FROM_ONE} from one network or sender" in about
    assert f"kept for {cleanup.RECEIVED_REPORT_DAYS} days" in about
    assert set(received_reports.ReportResult) <= set(markdown.CODE.findall(about))
