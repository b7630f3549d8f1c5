"""Every mistake is named by its place and in plain words; nothing of the library shows."""

import datetime as dt
import enum
from typing import Annotated, Any, Literal

import hypothesis
import msgspec
import pytest
from hypothesis import strategies
from msgspec import inspect

from postroad.web import validation_errors


class Colour(enum.StrEnum):
    RED = "red"
    GREEN = "green"


class Part(msgspec.Struct, forbid_unknown_fields=True):
    content: str
    size: Annotated[int, msgspec.Meta(ge=1, le=5)] | None = None


class Letter(msgspec.Struct, forbid_unknown_fields=True, rename={"sender": "from"}):
    sender: str
    to: Annotated[list[str], msgspec.Meta(min_length=1, max_length=5)] | str
    reply_to: str | None = None
    subject: Annotated[str, msgspec.Meta(min_length=1, max_length=500, pattern="^[^!]*$")] | None = None
    attachments: Annotated[list[Part], msgspec.Meta(max_length=1)] | None = None
    headers: dict[str, Annotated[str, msgspec.Meta(max_length=3)]] | None = None
    variables: Annotated[dict[str, str | int | float | bool], msgspec.Meta(max_length=2)] | None = None
    colour: Colour | None = None
    size: Literal["big", "small"] | None = None
    version: Literal[1, 2] | None = None
    share: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    urgent: bool | None = None
    at: dt.datetime | None = None
    anything: Any = None


LETTER = inspect.type_info(Letter)
GOOD = {"from": "a", "to": "b"}


def explain(document: object) -> str | None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(document, Letter)
    return validation_errors.first_problem(document, LETTER, root="body")


@pytest.mark.parametrize(
    "members, problem",
    [
        ({"to": ["a", "b", "c", 3]}, "to[3]: expected a string, got an integer"),
        ({"to": 1.5}, "to: expected an array or a string, got a number"),
        ({"to": {}}, "to: expected an array or a string, got a JSON object"),
        ({"to": []}, "to: at least 1 item"),
        ({"to": ["a"] * 6}, "to: at most 5 items"),
        ({"to": [None]}, "to[0]: expected a string, got null"),
        ({"from": True}, "from: expected a string, got a boolean"),
        ({"from": None}, "from: is required"),
        ({"reply-to": "c"}, "reply-to: unknown member; did you mean 'reply_to'?"),
        ({"x": 1}, "x: unknown member"),
        ({"": 1}, "'': unknown member"),
        ({"a" * 100: 1}, f"{'a' * 63}…: unknown member"),
        ({"a\r\nb\u202e": 1}, "a��b�: unknown member"),
        ({"subject": 3}, "subject: expected a string, got an integer"),
        ({"subject": ""}, "subject: at least 1 character"),
        ({"subject": "a" * 501}, "subject: at most 500 characters"),
        ({"subject": "a!"}, "subject: must match ^[^!]*$"),
        ({"attachments": [{}]}, "attachments[0].content: is required"),
        ({"attachments": [{"content": 1}]}, "attachments[0].content: expected a string, got an integer"),
        (
            {"attachments": [{"content": "a", "contnt": 1}]},
            "attachments[0].contnt: unknown member; did you mean 'content'?",
        ),
        ({"attachments": [{"content": "a", "size": 0}]}, "attachments[0].size: at least 1"),
        ({"attachments": [{"content": "a", "size": 6}]}, "attachments[0].size: at most 5"),
        ({"attachments": [{"content": "a", "size": 1.5}]}, "attachments[0].size: expected an integer, got a number"),
        ({"attachments": ["a"]}, "attachments[0]: expected a JSON object, got a string"),
        ({"attachments": [{"content": "a"}] * 2}, "attachments: at most 1 item"),
        ({"headers": {"X-A": "ok", "X-B": 1}}, "headers['X-B']: expected a string, got an integer"),
        ({"headers": {"X-A": "long"}}, "headers['X-A']: at most 3 characters"),
        ({"headers": {"X-A": None}}, "headers['X-A']: expected a string, got null"),
        ({"headers": []}, "headers: expected a JSON object, got an array"),
        ({"variables": {"a": 1, "b": 2, "c": 3}}, "variables: at most 2 members"),
        (
            {"variables": {"a": [1]}},
            "variables['a']: expected a string or an integer or a number or a boolean, got an array",
        ),
        ({"colour": "blue"}, "colour: expected one of 'red', 'green'"),
        ({"colour": 1}, "colour: expected a string, got an integer"),
        ({"size": "middle"}, "size: expected one of 'big', 'small'"),
        ({"version": 3}, "version: expected one of 1, 2"),
        ({"version": "2"}, "version: expected an integer, got a string"),
        ({"version": True}, "version: expected an integer, got a boolean"),
        ({"share": 0}, "share: more than 0"),
        ({"share": 1}, "share: less than 1"),
        ({"urgent": "true"}, "urgent: expected a boolean, got a string"),
        ({"urgent": 1}, "urgent: expected a boolean, got an integer"),
        ({"at": "tomorrow"}, "at: expected a time such as 2026-01-31T12:00:00Z"),
    ],
)
def test_a_mistake_is_named_by_its_place(members: dict[str, object], problem: str) -> None:
    assert explain({**GOOD, **members}) == problem


@pytest.mark.parametrize(
    "document, problem",
    [
        ([], "body: expected a JSON object, got an array"),
        (None, "body: expected a JSON object, got null"),
        ("x", "body: expected a JSON object, got a string"),
        ({}, "from: is required"),
        ({"from": "a"}, "to: is required"),
        ({"form": "a", "to": "b"}, "form: unknown member; did you mean 'from'?"),
    ],
)
def test_the_document_itself_may_be_the_mistake(document: object, problem: str) -> None:
    assert explain(document) == problem


def test_a_large_document_gets_a_general_answer_soon() -> None:
    document = {**GOOD, "headers": {str(number): "" for number in range(2 * 20_000)} | {"bad": 1}}
    assert "see /docs" in str(explain(document))


@pytest.mark.parametrize("size", [2.0, 2])
def test_a_whole_number_is_an_integer_however_it_is_written(size: float) -> None:
    document = {**GOOD, "attachments": [{"content": "a", "size": size}], "share": 0.5}
    whole = validation_errors.whole_numbers(document)
    assert validation_errors.first_problem(document, LETTER, root="body") is None
    assert msgspec.convert(whole, Letter).attachments == [Part("a", 2)]
    assert whole["share"] == 0.5


def test_a_whole_number_out_of_bounds_is_a_mistake_all_the_same() -> None:
    assert explain({**GOOD, "attachments": [{"content": "a", "size": 6.0}]}) == "attachments[0].size: at most 5"


JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats() | strategies.text(),
    lambda inner: (
        strategies.lists(inner)
        | strategies.dictionaries(strategies.text("aé\n") | strategies.sampled_from(sorted(GOOD)), inner)
    ),
    max_leaves=10,
)


@hypothesis.given(strategies.dictionaries(strategies.sampled_from(list(Letter.__struct_encode_fields__)), JSON))
def test_whatever_the_document_the_words_are_ours(document: dict[str, object]) -> None:
    try:
        msgspec.convert(document, Letter)
    except msgspec.ValidationError:
        problem = validation_errors.first_problem(document, LETTER, root="body")
        if problem is None:
            msgspec.convert(validation_errors.whole_numbers(document), Letter)
            return
        assert not any(
            word in problem
            for word in ("$.", "`", "Struct", "Expected", "object at", validation_errors.GENERIC_PROBLEM)
        )
