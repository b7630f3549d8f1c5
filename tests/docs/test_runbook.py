"""docs/runbook.md has an entry for every alert, and every alert leads to its entry and to a page of the console."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from postroad import config
from postroad.dashboard import application
from tests.dashboard import browser_client

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "runbook.md").read_text()
RUNBOOK = PAGE.split("\n## Alerts\n")[1].split("\n## ")[0]
ADDRESS = "https://github.com/postroad/postroad/blob/main/docs/runbook.md"


def is_page_of_the_console(path: str) -> bool:
    site = browser_client.build_site(config.load(environment={}, overrides={}))
    pages = [page.path for page in (route(site) for route in application.OPERATOR_ROUTES) if page.method == "GET"]
    return any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", page), path) for page in pages)


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_every_alert_has_an_entry_in_the_runbook_in_the_same_order_and_no_other() -> None:
    assert re.findall(r"^### (\w+)$", RUNBOOK, re.MULTILINE) == [alert["alert"] for alert in alerts()]


def test_every_entry_says_what_it_means_where_to_look_and_what_to_do() -> None:
    for entry in RUNBOOK.split("\n### ")[1:]:
        name, _, text = entry.partition("\n")
        assert re.findall(r"^- \*\*([\w ]+):\*\*", text, re.MULTILINE) == ["Meaning", "Check first", "What to do"], name


def test_every_alert_names_its_entry() -> None:
    named = {alert["alert"]: alert["annotations"]["runbook_url"] for alert in alerts()}
    assert named == {name: f"{ADDRESS}#{name.lower()}" for name in named}


def test_every_alert_leads_to_a_page_of_the_console() -> None:
    for alert in alerts():
        base, _, path = alert["annotations"]["console_url"].partition("/")
        page = f"/{path}".split("?")[0].replace("{{ $labels.provider }}", "google")
        assert (base, is_page_of_the_console(page)) == ("{{ $externalLabels.installation_url }}", True), alert["alert"]
    labels = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text())["global"]["external_labels"]
    assert labels == {"installation_url": "https://mail.example.com"}


def test_the_links_of_the_grafana_board_lead_to_pages_of_the_console() -> None:
    board = json.loads((ROOT / "deploy" / "grafana" / "postroad.json").read_text())
    links = [*board["links"], *(link for panel in board["panels"] for link in panel.get("links", []))]
    assert len(links) > 10
    for link in links:
        base, _, path = link["url"].partition("/")
        assert (base, is_page_of_the_console(f"/{path}")) == ("${console}", True), link["title"]
