"""Templates of other services in our language."""

import contextlib

import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.text import placeholders
from postroad.services.imports import foreign_templates
from postroad.services.imports.foreign_templates import Bodies
from postroad_postmark import template_language as postmark
from postroad_resend import template_language as resend


def _resend(html: str) -> str | None:
    return resend.translate(Bodies("s", None, html)).html


def _postmark(html: str) -> str | None:
    return postmark.translate(Bodies("s", None, html)).html


@pytest.mark.parametrize(
    "theirs, ours",
    [
        ("<p>{{{NAME}}} {{{ PRICE }}}</p>", "<p>{{NAME}} {{PRICE}}</p>"),
        ("a { color: red } b {c{d}}", "a { color: red } b {c{d}}"),
        ("{{! a note }}x", "x"),
        ("{{name}}", "{{name}}"),
    ],
)
def test_variables_of_resend_are_placeholders(theirs: str, ours: str) -> None:
    assert _resend(theirs) == ours


def test_every_part_is_translated() -> None:
    assert resend.translate(Bodies("{{{A}}}", "{{{B}}}", "{{{C}}}")) == Bodies("{{A}}", "{{B}}", "{{C}}")


@pytest.mark.parametrize(
    "theirs, reason",
    [
        ("{{{NAME|there}}}", "html: '{{{NAME|there}}}': a fallback is not supported"),
        ("{{{RESEND_UNSUBSCRIBE_URL}}}", "comes from Resend's contacts"),
        ("{{{contact.first_name}}}", "comes from Resend's contacts"),
        ("{{#if A}}x{{/if}}", "'{{#if A}}': sections are not imported"),
        ("{{else}}", "sections are not imported"),
        ("{{{1st}}}", "not a name"),
        ("{{{}}}", "not a name"),
        ("{{{" + "x" * 300 + "}}}", "in line 1 is not a placeholder"),
        ("{% if a %}", "in line 1 is not a placeholder"),
        ("{{ {{{A}}}", "in line 1 is not a placeholder"),
    ],
)
def test_what_resend_has_and_we_do_not_is_named(theirs: str, reason: str) -> None:
    with pytest.raises(foreign_templates.Untranslatable) as refused:
        _resend(theirs)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    "theirs, ours",
    [
        ("{{ name }} {{person.first_name}}", "{{name}} {{person.first_name}}"),
        ("{{! note }}{{name}}", "{{name}}"),
        ("{{{body}}} {{& body}}", "{{{body}}} {{{body}}}"),
    ],
)
def test_values_of_postmark_are_placeholders(theirs: str, ours: str) -> None:
    assert _postmark(theirs) == ours


def test_a_raw_value_of_postmark_is_one_where_nothing_is_escaped() -> None:
    translated = postmark.translate(Bodies("{{& a}}", "{{{b}}}", None))
    assert translated == Bodies("{{a}}", "{{b}}", None)


@pytest.mark.parametrize(
    "theirs, reason",
    [
        ("{{#each rows}}{{.}}{{/each}}", "'{{#each rows}}': sections"),
        ("{{^name}}you{{/name}}", "'{{^name}}': sections"),
        ("{{../name}}", "not a name"),
        ("{{.}}", "not a name"),
    ],
)
def test_what_postmark_has_and_we_do_not_is_named(theirs: str, reason: str) -> None:
    with pytest.raises(foreign_templates.Untranslatable) as refused:
        _postmark(theirs)
    assert reason in str(refused.value)


def test_a_layout_is_merged_into_its_template() -> None:
    layout = Bodies("", None, r"<b>{{{ @content }}}</b>")
    merged = postmark.translate(Bodies("s", "plain", r"\1 {{name}}"), layout)
    assert merged == Bodies("s", "plain", r"<b>\1 {{name}}</b>")


@hypothesis.given(strategies.text(alphabet="{}#^/!|@&%ab. \n"), strategies.text(alphabet="{}@content ", max_size=40))
def test_any_text_is_translated_or_refused(theirs: str, layout: str) -> None:
    source = Bodies(theirs, theirs, theirs)
    with contextlib.suppress(foreign_templates.Untranslatable):
        _assert_ours(resend.translate(source))
    with contextlib.suppress(foreign_templates.Untranslatable):
        _assert_ours(postmark.translate(source, Bodies("", layout, layout)))


def _assert_ours(made: Bodies) -> None:
    for part in (made.subject, made.text, made.html):
        placeholders.parse(part or "")


def test_a_hostile_text_takes_linear_time() -> None:
    # Quadratic time would be minutes.
    with pytest.raises(foreign_templates.Untranslatable):
        _resend("{{{" * 300_000)
    with pytest.raises(foreign_templates.Untranslatable):
        _postmark("{{ " * 300_000)


def test_a_layout_does_not_multiply_its_content() -> None:
    source = Bodies("s", None, "x" * 10)
    merged = postmark.translate(source, Bodies("", None, "{{{@content}}}" * 10))
    assert merged.html == "x" * 100
    with pytest.raises(foreign_templates.Untranslatable, match="its layout has the content more than 10 times"):
        postmark.translate(source, Bodies("", None, "{{{@content}}}" * 11))
