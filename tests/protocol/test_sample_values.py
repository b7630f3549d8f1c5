"""Sample values: what a name promises, every section shown, and beside what was given."""

import contextlib
import time

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.text import mustache, placeholders, sample_values


def sample(*sources: str) -> dict[str, object]:
    return sample_values.sample(map(mustache.parse, sources), today="19 November 2026", year="2026")


@pytest.mark.parametrize(
    "name, value",
    [
        ("name", "Ada"),
        ("firstName", "Ada"),
        ("customer.name", "Ada Lovelace"),
        ("company_name", "Corner Shop"),
        ("total_amount", "€42.00"),
        ("expires_at", "19 November 2026"),
        ("due-date", "19 November 2026"),
        ("year", "2026"),
        ("reset_url", "https://example.com/reset"),
        ("link", "https://example.com/"),
        ("code", "481 516"),
        ("order_number", "10042"),
        ("favourite_colour", "favourite colour"),
        ("_", "_"),
    ],
)
def test_a_sample_is_what_its_name_promises(name: str, value: str) -> None:
    assert sample(f"{{{{{name}}}}}") == {name: value}


@pytest.mark.parametrize(
    "source, expected",
    [
        ("{{#a}}{{b}}{{/a}}{{^a}}{{c}}{{/a}}", {"a": [{"b": "b"}], "c": "c"}),
        ("{{^a}}{{c}}{{/a}}{{#a}}{{b}}{{/a}}", {"a": [{"b": "b"}], "c": "c"}),
        ("{{#tags}}{{.}}{{/tags}}", {"tags": ["tags"]}),
        ("{{#a}}yes{{/a}}{{^b}}no{{/b}}", {"a": True, "b": False}),
        ("{{#name}}Hi {{name}}{{/name}}", {"name": "Ada"}),
        ("{{#discount}}{{discount}} {{currency}}{{/discount}}", {"discount": "€7.00", "currency": "EUR"}),
        ("{{#a}}{{#b}}{{c}}{{/b}}{{/a}}", {"a": [{"b": [{"c": "c"}]}]}),
        (
            "{{#a}}{{#b}}{{c}}{{/b}}{{/a}}{{#a}}{{d}}{{#b}}{{e}}{{/b}}{{/a}}",
            {"a": [{"b": [{"c": "c", "e": "e"}], "d": "d"}]},
        ),
    ],
)
def test_sample_values_show_every_section(source: str, expected: dict[str, object]) -> None:
    assert sample(source) == expected
    assert mustache.parse(source).render(expected, escape_html=True)


def test_several_templates_share_their_values() -> None:
    assert sample("{{name}}", "{{#rows}}{{title}}{{/rows}}", "{{#rows}}{{price}}{{/rows}}") == {
        "name": "Ada",
        "rows": [{"title": "Blue notebook", "price": "€42.00"}],
    }


@pytest.mark.parametrize(
    "source", ["{{^a%d}}{{/a%d}}", "{{#a}}{{x%d}}{{y%d}}{{/a}}", "{{#a}}{{a}}{{x%d}}{{y%d}}{{/a}}"]
)
def test_sample_values_of_many_sections_take_linear_time(source: str) -> None:
    """With the square it was twenty seconds."""
    begun = time.process_time()
    sample("{{#a}}{{b}}{{/a}}" + "".join(source % (number, number) for number in range(10_000)))
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    "source, given, filled",
    [
        ("{{name}} {{total}}", {"name": "Grace"}, {"name": "Grace", "total": "€42.00"}),
        ("{{name}}", {"name": "", "old": "x"}, {"name": ""}),
        (
            "{{#rows}}{{title}}{{price}}{{/rows}}",
            {"rows": [{"title": "Tea"}, {"title": "Cup", "price": "1"}]},
            {"rows": [{"title": "Tea", "price": "€42.00"}, {"title": "Cup", "price": "1"}]},
        ),
        (
            "{{#rows}}{{title}}{{currency}}{{/rows}}",
            {"currency": "USD", "rows": [{"title": "Tea"}]},
            {"currency": "USD", "rows": [{"title": "Tea"}]},
        ),
        ("{{#rows}}{{title}}{{/rows}}", {"rows": "rows"}, {"rows": [{"title": "Blue notebook"}]}),
        ("{{#rows}}{{title}}{{/rows}}", {"rows": []}, {"rows": []}),
        ("{{#rows}}{{title}}{{/rows}}", {"rows": False}, {"rows": False}),
        ("{{#rows}}{{title}}{{/rows}}", {"rows": {"title": "x"}}, {"rows": {"title": "x"}}),
        ("{{rows}}", {"rows": [1]}, {"rows": "rows"}),
        ("{{#on}}yes{{/on}}", {"on": [1, 2]}, {"on": [1, 2]}),
        ("{{user.name}}", {"user": {"name": "Grace"}}, {"user": {"name": "Grace"}}),
        ("{{user.name}}", {}, {"user.name": "Ada"}),
    ],
)
def test_what_was_given_is_kept_and_what_is_missing_is_filled_in(
    source: str, given: dict[str, object], filled: dict[str, object]
) -> None:
    assert sample_values.fill(given, sample(source)) == filled


def test_filling_in_long_lists_of_wide_sections_is_bounded() -> None:
    samples = sample("{{#rows}}" + "".join(f"{{{{x{number}}}}}" for number in range(10_000)) + "{{/rows}}")
    begun = time.process_time()
    assert sample_values.fill({"rows": [{}] * 10_000}, samples)["rows"] == [{}] * 10_000
    assert time.process_time() - begun < 3


@hypothesis.given(st.text("{}#^/&. ab\n", max_size=40), st.sampled_from(({}, {"a": 1}, {"a": [{"b": []}], "b": "x"})))
def test_no_value_is_missing_whatever_was_given(source: str, given: dict[str, object]) -> None:
    with contextlib.suppress(placeholders.SyntaxProblem):
        template = mustache.parse(source)
        values = sample_values.fill(given, sample(source))
        try:
            template.render(values, escape_html=True)
        except placeholders.MissingValues as problem:
            raise AssertionError(problem) from None
        except placeholders.TemplateError:
            assert given
