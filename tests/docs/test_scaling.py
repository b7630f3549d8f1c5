"""The figures of README.md, of docs/scaling.md and of docs/capacity.md follow from the benchmarks."""

import math
import re
from pathlib import Path

from benchmarks.simulation import internet, scenario
from postroad import config

ROOT = Path(__file__).parents[2]
SCALING = (ROOT / "docs" / "scaling.md").read_text()
README = (ROOT / "README.md").read_text()
CAPACITY = (ROOT / "docs" / "capacity.md").read_text()
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text()
SECONDS_A_DAY = 86_400
# Phases of the frontends in the table of costs.
FRONTEND_PHASES = ("HTTP", "parse", "validate", "compose", "authenticate")


def rows(title: str) -> dict[str, list[str]]:
    """The cells of a table of the results, by their first one."""
    part = RESULTS.split(f"\n## {title}\n")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", part, re.MULTILINE)
    ]
    return {first: rest for first, *rest in cells}


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    servers = ("Postfix", "Exim", "chasquid (files synced, not the folder)", "Haraka (files synced, not the folder)")
    for line, title in (
        ("accepted durably over HTTP (the others over SMTP)", "Durable accepts over HTTP"),
        ("accepted durably over SMTP", "Durable accepts over SMTP"),
        ("accepted and delivered", "From the POST to the destination"),
    ):
        found = rows(title)
        cells = [found[peer][0] for peer in ("Postroad, SQLite", *servers)]
        assert f"| {line} | {' | '.join(cells)} |" in README
    signed = rows("From the POST to the destination")
    cells = [signed[f"{peer}, signed"][0] for peer in ("Postroad, SQLite", "Postfix")]
    assert f"| accepted, signed with DKIM and delivered | {cells[0]} | {cells[1]} (OpenDKIM) |" in README
    row = r"^\| (?:Postroad, SQLite|Postfix) \| 100 \| ([\d.]+) \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|"
    (accepted, arrived), (by_postfix, arrived_by_postfix) = re.findall(row, RESULTS, re.MULTILINE)
    assert f"the median 202 takes {accepted} ms (Postfix's 250: {by_postfix} ms)" in README
    assert f"at its destination after {arrived} ms ({arrived_by_postfix} ms)" in README


def test_measured_rates_are_those_of_the_results() -> None:
    accepts, delivered = rows("Durable accepts over HTTP"), rows("From the POST to the destination")
    destinations, webhooks = rows("Many destinations, one of them dead"), rows("Webhooks")
    signed = [delivered[f"Postroad, {store}, signed"][0] for store in ("SQLite", "PostgreSQL")]
    for sentence in (
        f"HTTP: {accepts['Postroad, SQLite'][0]} a second; accepted, signed and delivered: {signed[0]} |",
        f"HTTP: {accepts['Postroad, PostgreSQL'][0]} a second; accepted, signed and delivered: {signed[1]},",
        f"unsigned: {destinations['SQLite, 40 destinations'][0]} a second (SQLite)",
        f"{destinations['PostgreSQL, 40 destinations'][0]} (PostgreSQL)",
        f"webhooks alone: {webhooks['SQLite, 10 endpoints'][0]} and {webhooks['PostgreSQL, 10 endpoints'][0]} |",
        f"the server used {delivered['Postroad, PostgreSQL, signed'][4]} µs",
    ):
        assert sentence in SCALING
    assert f"measured rates, {signed[0]} and {signed[1]} a second" in CAPACITY
    assert f"{delivered['Postroad, SQLite, signed'][3]} µs of CPU time a message" in CAPACITY


def test_messages_a_day_follow_from_the_rates() -> None:
    delivered = rows("From the POST to the destination")
    sqlite, postgresql = (
        number(delivered[f"Postroad, {store}, signed"][0]) * SECONDS_A_DAY // 10**6
        for store in ("SQLite", "PostgreSQL")
    )
    assert (sqlite, postgresql) == (53, 46)
    assert "| 53 million on SQLite, 46 million on PostgreSQL |" in CAPACITY
    one_core = 10**6 // number(delivered["Postroad, SQLite, signed"][3]) * SECONDS_A_DAY // 10**6
    assert f"| 1 | {one_core} million |" in CAPACITY


def test_what_is_left_to_the_writer_follows_from_the_table_of_costs() -> None:
    costs = {
        phase: number(cells[-1]) for phase, cells in rows("What a message costs").items() if cells[-1][-1].isdigit()
    }
    frontends = sum(costs[phase] for phase in FRONTEND_PHASES)
    writer = costs["all"] - frontends - costs["sign: workers"]
    assert f"about {10**6 // writer // 100 * 100:,} messages a second, from four cores on" in SCALING
    assert f"the writer needs {writer} µs for a message" in SCALING
    event = number(rows("Webhooks")["SQLite, 10 endpoints"][2])
    left = round(10**6 / (writer + event), -1)
    assert f"one event for each message costs another {event} µs, which leaves about {left:.0f}." in SCALING


def test_the_number_of_hosts_follows_from_limits_and_costs() -> None:
    world = scenario.load()["ordinary"]
    (google,) = [kind for kind in world.kinds if kind.name == "google"]
    limit = config.load(environment={}, overrides={"security": {"secret_key": "x" * 32}}).providers.google
    seconds = google.seconds * math.exp(internet.SIGMA**2 / 2)
    assert f"with {seconds:.2f} s for a transaction" in SCALING
    by_google = min(limit.messages_per_second, limit.connections / seconds) / google.share
    by_writer, by_server = (
        number(cell) for cell in re.findall(r"µs a message.* \| ([\d,]+) \| \d+ million \|", SCALING)
    )
    for rate, million in ((by_google, "3.4"), (by_writer, "56"), (by_server, "112")):
        a_day = rate / world.busy * SECONDS_A_DAY / 10**6
        assert f"{a_day:.1f}".startswith(million)
        assert f"| {int(rate):,}{' in all' if rate is by_google else ''} | {million} million |" in SCALING
    hosts = [math.ceil(messages * world.busy / SECONDS_A_DAY / by_google) for messages in (10**7, 10**8)]
    assert hosts == [3, 30]
    assert "10 million messages needs three hosts without any reserve (plan four)" in SCALING
    assert "one of 100 million needs 30" in SCALING


def test_what_a_host_takes_of_the_database_server_follows_from_its_cpu_time() -> None:
    found = re.findall(r"(?m)^\| ([\d,]+) \| [\d,]+ \| [\d,]+ \| ([\d,]+) \| ([\d.]+) \|$", SCALING)
    assert [rate for rate, _, _ in found] == ["10", "100", "300", "1,000"]
    for rate, microseconds, cores in found:
        assert cores == f"{number(rate) * number(microseconds) / 10**6:.2f}"


def test_what_simulated_days_have_shown_is_in_the_results() -> None:
    found = (ROOT / "benchmarks" / "simulation" / "RESULTS.md").read_text()
    for figure in (
        "5,775 recipients waited",
        "10 minutes after its end, the queue was as short as before",
        "suspended it 3 seconds after it began",
    ):
        assert figure in found
        assert figure in SCALING


def test_disk_space_follows_from_the_sizes_that_were_measured() -> None:
    content, rest = (
        [number(cell) for cell in re.findall(rf"^\| {row} \| (.*) \| (.*) \|$", CAPACITY, re.MULTILINE)[0]]
        for row in ("of these, its content", "what stays when its content has expired")
    )
    days = [(30, 90), (34, 102)]  # with the partitions of PostgreSQL
    assert "557 bytes together" in CAPACITY
    for messages, row, log in (
        (10_000, "| 3.4 GB | 7.4 GB |", "6 MB"),
        (10_000_000, "| 3.4 TB | 7.4 TB |", "5.6 GB"),
    ):
        space = [messages * (days[store][0] * content[store] + days[store][1] * rest[store]) for store in (0, 1)]
        unit = "GB" if messages < 10**6 else "TB"
        one = 10**9 if unit == "GB" else 10**12
        assert f"| {space[0] / one:.1f} {unit} | {space[1] / one:.1f} {unit} |" == row
        a_day = messages * 557
        assert log == (f"{a_day / 10**9:.1f} GB" if a_day > 10**9 else f"{a_day / 10**6:.0f} MB")
        assert re.search(rf"^\| {messages:,} \|.*{re.escape(row)} {log} \|$", CAPACITY, re.MULTILINE)
