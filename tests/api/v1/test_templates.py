"""`/v1/templates`: saved, listed, read, previewed and removed; the schema says what the service accepts."""

import re
from typing import Any

import hypothesis
from hypothesis import strategies

from postroad import errors
from postroad.api.v1 import templates
from postroad.mail.accept import validation
from postroad.protocol.mime import header_fields
from postroad.protocol.text import mustache, placeholders
from tests import contexts
from tests.api.management import AccountClients

WELCOME = {"subject": "Hi {{name}}", "text": "Dear {{name}}, {{ order }}", "html": "<b>{{name}}</b>"}


async def test_a_template_is_made_and_then_replaced(mine: AccountClients, clock: contexts.Clock) -> None:
    made = await mine.owner.put("/v1/templates/welcome", json=WELCOME)
    template = made.json()["template"]
    assert made.status_code == 201
    assert template == {
        "id": template["id"],
        "alias": "welcome",
        **WELCOME,
        "placeholders": ["name", "order"],
        "created_at": "2027-01-15T08:00:00.000Z",
        "updated_at": "2027-01-15T08:00:00.000Z",
    }
    clock.pass_seconds(60)
    replaced = await mine.owner.put("/v1/templates/welcome", json={"subject": "Hi", "text": "", "html": "x"})
    assert replaced.status_code == 200
    assert replaced.json()["template"] == {
        **template,
        "subject": "Hi",
        "text": None,
        "html": "x",
        "placeholders": [],
        "updated_at": "2027-01-15T08:01:00.000Z",
    }
    assert (await mine.reader.get("/v1/templates/welcome")).json()["template"] == replaced.json()["template"]


async def test_what_breaks_a_rule_is_refused_naming_it(mine: AccountClients) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("subject", {"subject": "x" * 501}),
        ("subject", {"subject": "{{ 7*7 }}"}),
        ("text", {"text": None, "html": None}),
        ("text", {"text": "a\0b"}),
        ("html", {"html": "x" * (256 * 1024 + 1)}),
    ]
    for field, change in cases:
        response = await mine.owner.put("/v1/templates/welcome", json={**WELCOME, **change})
        assert (response.status_code, response.json()["code"]) == (400, "invalid_request")
        assert response.json()["error"].startswith(f"{field}: ")
    for alias in ("Welcome", "a" * 65, "a%20b", "%00", "..%2fx"):
        response = await mine.owner.put(f"/v1/templates/{alias}", json=WELCOME)
        assert (response.status_code, response.json()["code"]) == (400, "invalid_request")
        assert response.json()["error"].startswith("alias: ")
    assert (await mine.owner.get("/v1/templates")).json()["templates"] == []


async def test_the_list_is_read_in_parts_by_alias_and_without_bodies(mine: AccountClients) -> None:
    for alias in ("c", "a", "b"):
        await mine.owner.put(f"/v1/templates/{alias}", json={"subject": alias, "html": "large"})
    first = (await mine.reader.get("/v1/templates?limit=2")).json()
    rest = (await mine.reader.get("/v1/templates", params={"cursor": first["next_cursor"]})).json()
    assert [one["alias"] for one in first["templates"] + rest["templates"]] == ["a", "b", "c"]
    assert (first["next_cursor"], rest["next_cursor"]) == ("b", None)
    (last,) = rest["templates"]
    assert (last["has_text"], last["has_html"]) == (False, True)
    assert last.keys().isdisjoint({"text", "html"})


async def test_a_preview_shows_what_would_be_sent(mine: AccountClients) -> None:
    await mine.owner.put("/v1/templates/welcome", json=WELCOME)
    variables = {"name": "<script>{{order}}</script>", "order": 7, "unused": True}
    response = await mine.reader.post("/v1/templates/welcome/preview", json={"variables": variables})
    assert response.status_code == 200
    assert response.json() == {
        "subject": "Hi <script>{{order}}</script>",
        "text": "Dear <script>{{order}}</script>, 7",
        "html": "<b>&lt;script&gt;{{order}}&lt;/script&gt;</b>",
        "request_id": response.headers["x-request-id"],
    }
    assert response.headers["content-type"] == "application/json"


async def test_a_preview_names_the_values_that_are_missing(mine: AccountClients) -> None:
    await mine.owner.put("/v1/templates/welcome", json=WELCOME)
    for body in ({}, {"variables": None}, {"variables": {"name": None}}):
        response = await mine.owner.post("/v1/templates/welcome/preview", json=body)
        assert (response.status_code, response.json()["code"]) == (400, "invalid_request")
    response = await mine.owner.post("/v1/templates/welcome/preview", json={"variables": {"name": "Ada"}})
    assert response.json()["error"] == "variables: 'order' is missing"


async def test_a_removed_template_is_gone(mine: AccountClients) -> None:
    await mine.owner.put("/v1/templates/welcome", json=WELCOME)
    assert (await mine.owner.delete("/v1/templates/welcome")).status_code == 204
    assert (await mine.owner.get("/v1/templates/welcome")).status_code == 404
    assert (await mine.owner.delete("/v1/templates/welcome")).status_code == 404


async def test_a_layout_is_saved_shown_and_kept_while_it_is_used(mine: AccountClients) -> None:
    await mine.owner.put("/v1/templates/base", json={"subject": "-", "text": "<{{> content}}>"})
    made = await mine.owner.put("/v1/templates/letter", json={**WELCOME, "layout": "base"})
    assert made.json()["template"]["layout"] == "base"
    assert "layout" not in (await mine.owner.get("/v1/templates/base")).json()["template"]
    shown = await mine.owner.post("/v1/templates/letter/preview", json={"variables": {"name": "Ada", "order": 1}})
    assert shown.json()["text"] == "<Dear Ada, 1>"
    refused = await mine.owner.delete("/v1/templates/base")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    for layout in ("", "No!", "none"):
        answer = await mine.owner.put("/v1/templates/letter", json={**WELCOME, "layout": layout})
        assert answer.status_code == 400, layout


def allows(pattern: str, text: str) -> bool:
    return re.search(pattern.removesuffix("$") + r"\Z", text) is not None


def is_source(text: str) -> bool:
    try:
        mustache.parse(text)
    except placeholders.TemplateError:
        return False
    return "\0" not in text


def is_subject(text: str) -> bool:
    try:
        validation.check_subject(text)
    except errors.InvalidRequest:
        return False
    return is_source(text)


SLIPPERY = strategies.lists(
    strategies.sampled_from(["{", "{{", "}", "}}", "{{#a}}", "{{/a}}", "{{b}}", "a", " ", "\n", "\0", "=?u?q?x?="]),
    max_size=8,
).map("".join)


@hypothesis.given(SLIPPERY)
def test_the_schema_of_a_body_allows_what_is_accepted(text: str) -> None:
    assert allows(templates.BODY_PATTERN, text) or not is_source(text)
    assert allows(templates.BODY_PATTERN, text) == ("\0" not in text)


@hypothesis.given(SLIPPERY)
def test_the_schema_of_a_subject_allows_what_is_accepted(text: str) -> None:
    hypothesis.assume(1 <= len(text) <= 500)
    assert allows(header_fields.VALUE_PATTERN, text) or not is_subject(text)
