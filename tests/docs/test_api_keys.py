"""What docs/api-keys.md says of scopes and limits is what keys have."""

import json
import re
from pathlib import Path

from postroad.api.v1 import api_keys, resource
from postroad.model.people import callers

PAGE = (Path(__file__).parents[2] / "docs" / "api-keys.md").read_text()


def rows(heading: str) -> dict[str, str]:
    """The first and second column of the table under a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.*?) \|", section, re.MULTILINE))


def test_every_scope_is_described_with_its_endpoints() -> None:
    described = rows("Scopes")
    assert list(described) == [
        "send",
        "read",
        "templates",
        "suppressions",
        "webhooks",
        "domains",
        "statistics",
        "team",
        "*",
        "operator",
    ]
    for name, scope in resource.SCOPES.items():
        assert scope is None or re.search(rf"/v1/{name}\b(?!-)", described[str(scope)]), name
    for path, named in (("POST /emails", "send"), ("POST /emails/batch", "send"), ("GET /emails/{id}", "read")):
        assert f"`{path}`" in described[named]


def test_every_limit_is_described() -> None:
    assert set(rows("Limits")) == set(callers.KeyLimits.__struct_fields__)


def test_the_example_is_that_of_the_reference() -> None:
    shown = PAGE.split("<!-- example: api_key -->\n```json\n")[1].split("\n```")[0]
    assert json.loads(shown) == api_keys.EXAMPLES[-1]
