"""A name is one plain line; the schema says the same as the check."""

import re

import hypothesis
import pytest
from hypothesis import strategies

from postroad import errors
from postroad.model.units import labels


@pytest.mark.parametrize("name", ["Shop", "x", " ", "Käse & Söhne <b>", "日本", "%_'\"\\", "x" * 100, "👩‍👩‍👧"])
def test_a_plain_line_is_a_name(name: str) -> None:
    assert labels.check_label("name", name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 101,
        "a\nb",
        "a\n",
        "a\r",
        "a\0b",
        "a\tb",
        "\x7f",
        "\x85",
        "a\u2028b",
        "\u202eevil",
        "\u2066x",
        "\ud800",
    ],
)
def test_anything_else_is_refused_naming_the_field(name: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^name: must be 1 to 100 "):
        labels.check_label("name", name)


def test_the_bound_can_be_another() -> None:
    assert labels.check_label("reason", "x" * 200, limit=200)
    with pytest.raises(errors.InvalidRequest, match=r"^reason: must be 1 to 200 "):
        labels.check_label("reason", "x" * 201, limit=200)


@hypothesis.given(strategies.text(min_size=1, max_size=5))
def test_the_schema_allows_what_the_check_allows(name: str) -> None:
    said_by_schema = re.search(labels.LABEL_PATTERN.removesuffix("$") + r"\Z", name) is not None
    try:
        labels.check_label("name", name)
    except errors.InvalidRequest:
        assert not said_by_schema
    else:
        assert said_by_schema


def test_a_domain_is_written_as_it_is_stored() -> None:
    assert labels.parse_domain("domain", "BÜCHER.example") == "xn--bcher-kva.example"
    with pytest.raises(errors.InvalidRequest, match="domain: "):
        labels.parse_domain("domain", "no domain")


def test_an_address_is_read_or_refused_with_the_name_of_its_field() -> None:
    assert labels.parse_mailbox("email", "Jo <Jo@Example.com>").key == "jo@example.com"
    with pytest.raises(errors.InvalidRequest, match="email: "):
        labels.parse_mailbox("email", "no address")
