"""What `schemathesis run` calls while it tests: loaded by its process; a variable says what the service has."""

import json
import os
from pathlib import Path
from typing import Any

import schemathesis

from tests.openapi import case_filler

# All letters of some scripts may stand in an address. Hypothesis collects the letters of a pattern one by one, each
# time that it reads the pattern, which takes longer than everything else together: a few of each script have to do.
LETTERS = {
    r"\u3041-\u3096": r"\u3041-\u3049",
    r"\u30a1-\u30fa": r"\u30a1-\u30a9",
    r"\u4e00-\u9fa5": r"\u4e00-\u4e0f",
    r"\uac00-\ud7a3": r"\uac00-\uac0f",
}
# What a sent message can be read by. The other chains are found by schemathesis itself, by the names of things.
READERS = ("getEmail", "getMessage", "getRawMessage")

FACTS = case_filler.ServiceFacts(**json.loads(Path(os.environ[case_filler.VARIABLE]).read_text()))
FILLER = case_filler.CaseFiller(FACTS)


@schemathesis.hook
def before_load_schema(_context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """Make the document cheaper to generate from, and say which answer feeds which request."""
    _ease(raw_schema)
    sent = raw_schema["paths"]["/emails"]["post"]["responses"]["202"]
    sent["links"] = {name: {"operationId": name, "parameters": {"id": "$response.body#/id"}} for name in READERS}
    # A hundred messages take minutes to generate.
    for name in ("emails", "recipients"):
        _without_upper_bound(raw_schema["components"]["schemas"]["BatchRequest"]["properties"][name])
    if FACTS.members_alone:
        del raw_schema["components"]["schemas"]["SendRequest"]["allOf"]


@schemathesis.hook
def before_call(_context: schemathesis.HookContext, case: schemathesis.Case[Any], _kwargs: dict[str, Any]) -> None:
    """Put in what exists."""
    FILLER.fill(case)


@schemathesis.hook
def after_call(
    _context: schemathesis.HookContext, case: schemathesis.Case[Any], response: schemathesis.Response
) -> None:
    """Remember what was made."""
    FILLER.learn(case, response)


def _without_upper_bound(schema: dict[str, Any]) -> None:
    for one in (schema, *schema.get("anyOf", ())):
        one.pop("maxItems", None)


def _ease(part: object) -> None:
    if isinstance(part, list):
        for item in part:
            _ease(item)
    if not isinstance(part, dict):
        return
    for item in part.values():
        _ease(item)
    if isinstance(part.get("pattern"), str):
        for letters, some in LETTERS.items():
            part["pattern"] = part["pattern"].replace(letters, some)
