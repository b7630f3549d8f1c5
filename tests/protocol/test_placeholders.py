"""Placeholders: names are replaced by values, once, and nothing else in a template means anything."""

import html
import json
import math
import re

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.text import placeholders


def render(source: str, values: dict[str, object], *, escape_html: bool = False) -> str:
    return placeholders.parse(source).render(values, escape_html=escape_html)


@pytest.mark.parametrize(
    "source, rendered",
    [
        ("", ""),
        ("Hello", "Hello"),
        ("Hello {{name}}!", "Hello Ada!"),
        ("{{ name }}{{name}}{{   name}}", "AdaAdaAda"),
        ("{{a.b-c_1}}", "x"),
        ("{{_}}", "y"),
        ("}} { } {a} } }", "}} { } {a} } }"),
        ("@media x{a{color:{{c}}}}", "@media x{a{color:red}}"),
        ("100 % {x%} {# no #} ${name} $name %(name)s {name} {0.__class__}", None),
    ],
)
def test_a_template_is_text_with_names_in_double_braces(source: str, rendered: str | None) -> None:
    values: dict[str, object] = {"name": "Ada", "a.b-c_1": "x", "_": "y", "c": "red"}
    assert render(source, values) == (source if rendered is None else rendered)


@pytest.mark.parametrize(
    "source, quoted",
    [
        ("a {{ 7*7 }} b", "'{{ 7*7 }}'"),
        ("{{ ''.__class__.__mro__ }}", "__mro__ }}"),
        ("{{ x|attr('__init__') }}", "{{ x|attr("),
        ('{{ env "DB_PASSWORD" }}', "DB_PASSWORD"),
        ("{{ cycler.__init__.__globals__() }}", "{{ cycler"),
        ("{% set f='{0.__class__}'.format %}", "{% set f="),
        ("{% include '/etc/passwd' %}", "{% include"),
        ("{{{name}}}", "'{{{name}}'"),
        ("{{{{name}}}}", "{{{{name}}"),
        ("{{}}", "'{{}}'"),
        ("{{ }}", "'{{ }}'"),
        ("{{#if x}}", "'{{#if x}}'"),
        ("{{/if}}", "'{{/if}}'"),
        ("{{> partial}}", "'{{> partial}}'"),
        ("{{&name}}", "'{{&name}}'"),
        ("{{1st}}", "'{{1st}}'"),
        ("{{first name}}", "'{{first name}}'"),
        ("{{näme}}", "'{{näme}}'"),
        ("{{na\nme}}", r"'{{na\nme}}'"),
        ("{{\nname}}", r"'{{\nname}}'"),
        ("{{\tname}}", r"'{{\tname}}'"),
        ("{{name", "'{{name…'"),
        ("{{name}", "'{{name}…'"),
        ("{{name} }", "'{{name} }…'"),
        ("Dear {{", "'{{…'"),
        ("{{" + "a" * 65 + "}}", "'{{aaa"),
        ("ok {{name}} then {{ name", "'{{ name…'"),
    ],
)
def test_everything_else_in_double_braces_is_refused_and_quoted(source: str, quoted: str) -> None:
    with pytest.raises(placeholders.TemplateError) as caught:
        placeholders.parse(source)
    assert quoted in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 250


def test_the_line_of_a_mistake_is_named() -> None:
    with pytest.raises(placeholders.TemplateError, match="in line 3 is not a placeholder"):
        placeholders.parse("a\n{{b}}\n {{ c! }}")


def test_the_names_of_a_template_are_listed_once_in_their_order() -> None:
    template = placeholders.parse("{{b}} {{a}} {{ b }} {{" + "c" * 64 + "}}")
    assert template.names == ("b", "a", "c" * 64)
    assert placeholders.parse("none").names == ()


def test_all_missing_values_are_named_and_unknown_ones_ignored() -> None:
    template = placeholders.parse("{{a}} {{b}} {{c}} {{a}}")
    with pytest.raises(placeholders.MissingValues, match="values are missing for 'a', 'c'") as caught:
        template.render({"b": "x", "c": None, "d": "y"}, escape_html=False)
    assert caught.value.names == ("a", "c")
    with pytest.raises(placeholders.MissingValues, match="a value is missing for 'b'"):
        template.render({"a": "", "c": 0}, escape_html=False)
    assert template.render({"a": "", "b": 0, "c": False, "d": "y"}, escape_html=False) == " 0 false "


@pytest.mark.parametrize(
    "value", ["{{ 7*7 }}", "{{a}}", "{{b}}", "}}{{", "{% x %}", "\\1", "\\g<0>", "$a", "%s", "{0}"]
)
def test_a_value_is_never_rendered_again(value: str) -> None:
    assert render("{{a}}|{{b}}", {"a": value, "b": "x"}) == f"{value}|x"


def test_values_side_by_side_cannot_form_a_placeholder() -> None:
    assert render("{{a}}{{b}}{{c}}", {"a": "{{", "b": "c", "c": "}}"}) == "{{c}}"
    assert render("{{{a}}".replace("{{{", "{ {{"), {"a": "x"}) == "{ x"


@pytest.mark.parametrize(
    "value, text",
    [
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-7, "-7"),
        (2**64 - 1, "18446744073709551615"),
        (1.5, "1.5"),
        (1.0, "1.0"),
        (1e22, "1e+22"),
        (-0.0, "-0.0"),
        ("", ""),
        ("é\n", "é\n"),
    ],
)
def test_values_look_as_in_json(value: object, text: str) -> None:
    assert render("{{a}}", {"a": value}) == text
    if not isinstance(value, str):
        assert json.dumps(value) == text


@pytest.mark.parametrize(
    "value", [[], {}, ["x"], math.nan, math.inf, -math.inf, b"x", 2**64, pytest.param(10**5000, id="huge")]
)
def test_other_values_are_refused_by_name(value: object) -> None:
    with pytest.raises(placeholders.TemplateError, match="'a' must be a string, a number or a boolean"):
        render("{{a}}", {"a": value})


def test_markup_in_a_value_is_escaped_in_html_alone() -> None:
    value = """<script>&"'</script> "onload=alert(1) javascript:x"""
    assert render("{{a}}", {"a": value}) == value
    escaped = render('<a title="{{a}}">', {"a": value}, escape_html=True)
    assert escaped == f'<a title="{html.escape(value)}">'
    assert not set("<>\"'") & set(escaped.removeprefix('<a title="').removesuffix('">'))


def test_the_markup_of_the_template_is_not_escaped() -> None:
    assert render("<b>&amp;{{a}}</b>", {"a": "&"}, escape_html=True) == "<b>&amp;&amp;</b>"


def test_a_small_template_cannot_grow_beyond_any_message() -> None:
    template = placeholders.parse("{{a}}" * 1000)
    with pytest.raises(placeholders.RenderedTooLarge):
        template.render({"a": "x" * 20_000}, escape_html=False)
    with pytest.raises(placeholders.RenderedTooLarge):
        placeholders.parse("{{a}}").render({"a": "'" * 2_000_000}, escape_html=True)
    ten_mebibytes = 10 * 1024 * 1024
    assert (
        len(placeholders.parse("x{{a}}").render({"a": "x" * (ten_mebibytes - 1)}, escape_html=False)) == ten_mebibytes
    )
    with pytest.raises(placeholders.RenderedTooLarge, match="longer than 10485760 characters"):
        placeholders.parse("x{{a}}").render({"a": "x" * ten_mebibytes}, escape_html=False)


NAMES = st.from_regex(placeholders.NAME_PATTERN[:-1] + r"\Z")


@hypothesis.given(st.lists(st.tuples(st.text(st.characters(exclude_characters="{")), NAMES)), st.text(), st.data())
def test_rendering_is_the_same_as_putting_texts_together(
    parts: list[tuple[str, str]], value: str, data: st.DataObject
) -> None:
    spaces = st.text(" ", max_size=3)
    source = "".join(f"{text}{{{{{data.draw(spaces)}{name}{data.draw(spaces)}}}}}" for text, name in parts)
    values: dict[str, object] = {name: value + name for _, name in parts}
    assert render(source, values) == "".join(text + value + name for text, name in parts)
    assert set(placeholders.parse(source).names) == values.keys()


@hypothesis.given(st.text("{}% aB_.-1\n", max_size=40))
def test_any_source_is_a_template_or_refused(source: str) -> None:
    try:
        template = placeholders.parse(source)
    except placeholders.TemplateError:
        assert re.search(r"\{[{%]", source)
        return
    rendered = template.render(dict.fromkeys(template.names, ""), escape_html=True)
    assert rendered == re.sub(r"\{\{ *[^{} ]* *\}\}", "", source)
