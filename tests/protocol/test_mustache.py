"""Templates with sections follow the specification of Mustache, whose own tests run here, and are bounded."""

import json
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.text import mustache, placeholders

SPEC = Path(__file__).parent / "mustache_spec"
# The optional modules (lambdas, inheritance, dynamic names) are not here. Of the required ones, every case runs:
# as it is, or, if it is about one of these, to show that it is refused and how.
DELIMITERS = "delimiters"
MISSING = {
    "interpolation": {
        "Basic Null Interpolation",
        "Triple Mustache Null Interpolation",
        "Ampersand Null Interpolation",
        "Basic Context Miss Interpolation",
        "Triple Mustache Context Miss Interpolation",
        "Ampersand Context Miss Interpolation",
        "Dotted Names - Broken Chains",
        "Dotted Names - Broken Chain Resolution",
        "Dotted Names - Context Precedence",
    },
    "inverted": {"Context Misses", "Dotted Names - Broken Chains"},
    "sections": {"Context Misses", "Dotted Names - Broken Chains"},
}
CASES = [
    (path.stem, case)
    for path in sorted(SPEC.glob("*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))["tests"]
]


def render(source: str, values: object, parts: dict[str, str] | None = None, *, escape_html: bool = True) -> str:
    template = mustache.parse(source)
    if isinstance(template, placeholders.Template):
        assert isinstance(values, dict)
        return template.render(values, escape_html=escape_html)
    return template.render(values, escape_html=escape_html, parts=parts or {})


@pytest.mark.parametrize("module, case", CASES, ids=[f"{module}: {case['name']}" for module, case in CASES])
def test_the_specification(module: str, case: dict[str, Any]) -> None:
    if module == DELIMITERS:
        with pytest.raises(placeholders.TemplateError, match=r"^'\{\{=.* is not a placeholder"):
            render(case["template"], case["data"], case.get("partials"))
    elif case["name"] in MISSING.get(module, ()):
        with pytest.raises(placeholders.MissingValues):
            render(case["template"], case["data"])
    elif (module, case["name"]) == ("partials", "Failed Lookup"):
        with pytest.raises(placeholders.TemplateError, match="the part 'text' does not exist"):
            render(case["template"], case["data"], {})
    else:
        assert render(case["template"], case["data"], case.get("partials")) == case["expected"]


FALSE: tuple[object, ...] = (False, None, 0, 0.0, "", [])
TRUE: tuple[object, ...] = (True, 7, "0", {}, [0], {"x": 1})


@pytest.mark.parametrize("value, is_shown", [*((one, False) for one in FALSE), *((one, True) for one in TRUE)])
def test_what_is_false(value: object, *, is_shown: bool) -> None:
    assert render("{{#a}}yes{{/a}}{{^a}}no{{/a}}", {"a": value}) == ("yes" if is_shown else "no")


def test_all_names_without_a_value_are_named_once() -> None:
    source = "{{a}}{{#b}}{{c}}{{/b}}{{#items}}{{name}}{{#note}}x{{/note}}{{/items}}{{a}}"
    with pytest.raises(placeholders.MissingValues) as caught:
        render(source, {"items": [{"name": "x"}, {"note": None}]})
    assert caught.value.names == ("a", "b", "note", "name")


def test_a_name_with_dots_is_a_key_or_a_path() -> None:
    values = {"user": {"name": "Ada", "note": None}, "user.id": 7}
    assert render("{{user.name}} {{user.id}}", values) == "Ada 7"
    assert render("{{#user}}{{name}} {{user.id}}{{/user}}{{^user.note}}!{{/user.note}}", values) == "Ada 7!"
    for source in ("{{user.note}}", "{{user.name.x}}", "{{#user}}{{user.none}}{{/user}}"):
        with pytest.raises(placeholders.MissingValues):
            render(source, values)


def test_a_list_or_an_object_cannot_be_put_out() -> None:
    for value in ([1], {"a": 1}):
        with pytest.raises(placeholders.TemplateError, match="'a' must be a string, a number or a boolean"):
            render("{{#b}}{{{a}}}{{/b}}", {"a": value, "b": True})


def test_text_is_not_escaped_and_values_are_never_rendered_again() -> None:
    assert render("{{#a}}{{.}}{{/a}}", {"a": ["<{{b}}>"]}, escape_html=False) == "<{{b}}>"
    assert render("{{#a}}{{.}}|{{{.}}}{{/a}}", {"a": ["<{{b}}>'"]}) == "&lt;{{b}}&gt;&#x27;|<{{b}}>'"


@pytest.mark.parametrize(
    "source, line, column, problem",
    [
        ("a\n {{#a}}", 2, 2, "'{{#a}}' in line 2 is not closed, expected {{/a}}"),
        ("{{/a}}", 1, 1, "'{{/a}}' in line 1 closes a section that is not open"),
        ("{{#a}}\n{{/b}}", 2, 1, "'{{/b}}' in line 2 does not close '{{#a}}' of line 1, which is open"),
        ("{{#a}}{{^b}}{{/a}}{{/b}}", 1, 13, "'{{/a}}' in line 1 does not close '{{^b}}' of line 1, which is open"),
        ("\n\n  {{#if a}}", 3, 3, "'{{#if a}}' in line 3 is not a placeholder, write {{#name}} … {{/name}} for a"),
        ("{{=<% %>=}}", 1, 1, "'{{=<% %>=}}' in line 1 is not a placeholder, expected a name in double braces"),
        ("{{! never closed", 1, 1, "'{{! never closed…' in line 1 is not a placeholder"),
        ("{{{a}}", 1, 1, "'{{{a}}' in line 1 is not a placeholder"),
        ("{{> ../x}}", 1, 1, "'{{> ../x}}' in line 1 is not a placeholder"),
        ("{{#a}}" * 17, 1, 97, "'{{#a}}' in line 1 is nested too deeply; sections may be at most 16 levels deep"),
    ],
)
def test_a_mistake_has_its_place(source: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(placeholders.SyntaxProblem) as caught:
        mustache.parse(source)
    assert str(caught.value).startswith(problem)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_nested_loops_over_a_long_list_end_with_an_error() -> None:
    source = "{{#a}}" * 16 + "x" + "{{/a}}" * 16
    with pytest.raises(mustache.TooManySteps, match="more than 100000 steps with these values; use shorter lists"):
        render(source, {"a": list(range(1, 1000))})
    with pytest.raises(mustache.TooManySteps):
        render("{{#a}}{{#a}}{{#a}}{{/a}}{{/a}}{{/a}}", {"a": ["x"] * 1000})


def test_a_loop_cannot_grow_beyond_any_message() -> None:
    with pytest.raises(placeholders.RenderedTooLarge, match="longer than 10485760 characters"):
        render("{{#a}}{{b}}{{/a}}", {"a": [1] * 11, "b": "x" * 2**20})


def test_a_part_in_itself_ends_with_an_error() -> None:
    with pytest.raises(placeholders.TemplateError, match="nested more than 16 deep"):
        render("{{> a}}", {}, {"a": "x {{> a}}"})
    with pytest.raises(mustache.TooManySteps):
        render("".join(f"{' ' * count}{{{{> a}}}}\n" for count in range(100)), {}, {"a": "x" * 65536})


def test_a_long_indentation_of_many_lines_ends_before_it_is_made() -> None:
    """It would have 20 GB."""
    with pytest.raises(mustache.TooManySteps):
        render(" " * 200_000 + "{{> a}}", {}, {"a": "x\n" * 100_000})


def test_the_names_outside_of_sections_and_the_parts_are_listed() -> None:
    template = mustache.parse("{{b}}{{#a}}{{c}}{{> foot}}{{/a}}{{{d}}}{{^b}}{{e}}{{/b}}{{> head}}{{> foot}}")
    assert template.names == ("b", "a", "d")
    assert mustache.parts_of(template) == ("foot", "head")
    assert mustache.parts_of(mustache.parse("{{a}}")) == ()


@hypothesis.given(st.text("{}#^/&>!. ab\n", max_size=40))
def test_any_source_is_a_template_or_refused_with_a_place(source: str) -> None:
    place = None
    try:
        mustache.parse(source)
    except placeholders.SyntaxProblem as problem:
        place = problem.line, problem.column
    if place is not None:
        assert source.split("\n")[place[0] - 1][place[1] - 1 :].startswith("{")
