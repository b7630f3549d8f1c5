"""The figures of README.md, of docs/scaling.md and of docs/capacity.md follow from the benchmarks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCALING = (ROOT / "docs" / "scaling.md").read_text()
README = (ROOT / "README.md").read_text()
CAPACITY = (ROOT / "docs" / "capacity.md").read_text()
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text()


def rows(title: str) -> dict[str, list[str]]:
    """The cells of a table of the results, by their first one."""
    part = RESULTS.split(f"\n## {title}\n")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", part, re.MULTILINE)
    ]
    return {first: rest for first, *rest in cells}


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
    assert f"the load as a share of {signed[0]} messages a second" in CAPACITY
