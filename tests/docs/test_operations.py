"""docs/operations.md has an entry for every alert, and every alert leads to its entry."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()
RUNBOOK = PAGE.split("\n## Runbook\n")[1].split("\n## ")[0]
ADDRESS = "https://github.com/postroad/postroad/blob/main/docs/operations.md"


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_every_alert_has_an_entry_in_the_runbook_in_the_same_order_and_no_other() -> None:
    assert re.findall(r"^### (\w+)$", RUNBOOK, re.MULTILINE) == [alert["alert"] for alert in alerts()]


def test_every_entry_says_what_it_means_where_to_look_and_what_to_do() -> None:
    for entry in RUNBOOK.split("\n### ")[1:]:
        name, _, text = entry.partition("\n")
        assert re.findall(r"^- \*\*([\w ]+):\*\*", text, re.MULTILINE) == ["Meaning", "First look", "What to do"], name


def test_every_alert_names_its_entry() -> None:
    named = {alert["alert"]: alert["annotations"]["runbook_url"] for alert in alerts()}
    assert named == {name: f"{ADDRESS}#{name.lower()}" for name in named}
