"""The figures of README.md, of docs/scaling.md and of docs/capacity.md follow from the benchmarks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCALING = (ROOT / "docs" / "scaling.md").read_text()
README = (ROOT / "README.md").read_text()
CAPACITY = (ROOT / "docs" / "capacity.md").read_text()
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text()
SECONDS_A_DAY = 86_400


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
        f"server used {delivered['Postroad, PostgreSQL, signed'][4]} µs",
    ):
        assert sentence in SCALING
    assert f"measured rates, {signed[0]} and {signed[1]} a second" in CAPACITY


def test_messages_a_day_follow_from_the_rates() -> None:
    delivered = rows("From the POST to the destination")
    sqlite, postgresql = (
        number(delivered[f"Postroad, {store}, signed"][0]) * SECONDS_A_DAY // 10**6
        for store in ("SQLite", "PostgreSQL")
    )
    assert (sqlite, postgresql) == (53, 46)
    assert "| 53 million on SQLite, 46 million on PostgreSQL |" in CAPACITY


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
