"""Schemas for people: null among the types, words as strings, and each titled type in one place."""

from postroad.api import openapi

COLOUR = {"title": "Colour", "description": "A colour.", "type": "string", "pattern": "^#"}
REFERENCE = {"$ref": "#/components/schemas/Colour"}


def test_a_titled_type_becomes_a_component_that_is_referred_to() -> None:
    members = {
        "first": COLOUR | {"description": "The first one."},
        "last": {"anyOf": [COLOUR, {"type": "null"}]},
        "others": {"type": "array", "items": COLOUR},
    }
    assert openapi._readable({"Flag": {"title": "Flag", "type": "object", "properties": members}}) == {
        "Flag": {
            "title": "Flag",
            "type": "object",
            "properties": {
                "first": REFERENCE | {"description": "The first one."},
                "last": {"anyOf": [REFERENCE, {"type": "null"}]},
                "others": {"type": "array", "items": REFERENCE},
            },
        },
        "Colour": COLOUR,
    }


def test_a_member_called_title_is_a_member() -> None:
    book = {"title": "Book", "type": "object", "properties": {"title": {"type": "string"}}}
    assert openapi._readable({"Book": book}) == {"Book": book}


def test_null_is_one_of_the_types_and_no_default() -> None:
    members = {
        "age": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None, "description": "Age."},
        "size": {"type": "integer", "default": 5},
    }
    assert openapi._readable({"Tree": {"properties": members}})["Tree"]["properties"] == {
        "age": {"type": ["integer", "null"], "minimum": 0, "description": "Age."},
        "size": {"type": "integer", "default": 5},
    }


def test_words_to_choose_from_are_strings_and_may_be_null() -> None:
    kind = {"enum": ["big", "small"]}
    members = {"kind": {"anyOf": [kind, {"type": "null"}]}}
    assert openapi._readable({"Kind": kind, "Tree": {"properties": members}}) == {
        "Kind": {"enum": ["big", "small"], "type": "string"},
        "Tree": {"properties": {"kind": {"anyOf": [{**kind, "type": "string"}, {"type": "null"}]}}},
    }


def test_a_parameter_has_no_null() -> None:
    assert openapi._without_null({"type": ["integer", "null"], "minimum": 1}) == {
        "type": "integer",
        "minimum": 1,
    }
    assert openapi._without_null({"anyOf": [REFERENCE, {"type": "null"}], "description": "x"}) == {
        **REFERENCE,
        "description": "x",
    }
    assert openapi._without_null({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}) == {
        "anyOf": [{"type": "string"}, {"type": "integer"}]
    }
    assert openapi._without_null({"type": "string"}) == {"type": "string"}
