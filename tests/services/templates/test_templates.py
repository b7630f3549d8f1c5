"""Templates are checked when they are saved and rendered once; no value leaves the place that it was put in."""

import dataclasses
import re
import threading
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from postroad import context, errors
from postroad.mail.accept import rendering
from postroad.model.mail import statuses
from postroad.protocol.text import mustache
from postroad.services.accounts import account_registry as accounts
from postroad.services.templates import template_drafts, templates
from postroad.storage.mail import templates as stored_templates
from tests import accepted_mail, contexts
from tests.compat import compat_client


def template(subject: str = "Hello", text: str | None = None, html: str | None = None) -> stored_templates.Template:
    return stored_templates.Template("tpl_1", "acc_1", "welcome", subject, text, html, 0, 0)


def test_values_fill_placeholders_escaped_in_html_only() -> None:
    rendered = rendering.render(
        template("Hi {{name}}", "{{ name }} & {{n}}", "<b>{{name}}</b>"), {"name": "<Ada> & \"Bob\" 'x'", "n": 3}
    )
    assert rendered.subject == "Hi <Ada> & \"Bob\" 'x'"
    assert rendered.text == "<Ada> & \"Bob\" 'x' & 3"
    assert rendered.html == "<b>&lt;Ada&gt; &amp; &quot;Bob&quot; &#x27;x&#x27;</b>"
    # A body that is not there stays away, and a subject that is given is taken as it is.
    assert rendering.render(template(html="x"), {}) == rendering.Rendered("Hello", None, "x")
    given = rendering.render(template("{{gone}}", "{{name}}"), {"name": "Ada"}, subject="Offer {{today}}")
    assert given == rendering.Rendered("Offer {{today}}", "Ada", None)


@pytest.mark.parametrize(
    "value, text", [("x", "x"), ("", ""), (True, "true"), (False, "false"), (0, "0"), (-7, "-7"), (1.5, "1.5")]
)
def test_strings_numbers_and_booleans_are_values(value: statuses.TemplateValue, text: str) -> None:
    assert rendering.render(template(text="[{{v}}]"), {"v": value}).text == f"[{text}]"


@pytest.mark.parametrize("value", ["{{ 7*7 }}", "{{name}}", "{% include '/etc/passwd' %}", "{{ config }}"])
def test_a_value_is_never_rendered_again(value: str) -> None:
    rendered = rendering.render(template("{{v}}", "{{v}}", "{{v}}"), {"v": value, "name": "leaked", "config": "leaked"})
    assert rendered.subject == rendered.text == value
    assert rendered.html == value.replace("'", "&#x27;")


def test_all_missing_values_are_named_once_wherever_they_stand() -> None:
    for values, sentence in (
        ({"unused": 1}, "variables: 'a', 'b', 'c' are missing"),
        ({"a": "x", "c": "x"}, "variables: 'b' is missing"),
    ):
        with pytest.raises(errors.InvalidRequest) as refusal:
            rendering.render(template("{{a}}", "{{b}} {{a}}", "{{c}}"), values)
        assert refusal.value.message == sentence


@pytest.mark.parametrize(
    "value", ["a\r\nBcc: v@example.net", "a\nb", "a\rb", "a\0b", "a\u2028b", "=?utf-8?q?=0D=0A?=", "", "x" * 501]
)
def test_a_value_cannot_break_out_of_the_subject_or_its_length(value: str) -> None:
    with pytest.raises(errors.InvalidRequest):
        rendering.render(template("{{name}}", "x"), {"name": value})


@pytest.mark.parametrize("field", ["text", "html"])
def test_a_body_takes_line_breaks_but_no_nul(field: str) -> None:
    bodied = template(**{field: "{{v}}"})
    assert getattr(rendering.render(bodied, {"v": "a\r\nb"}), field) == "a\r\nb"
    with pytest.raises(errors.InvalidRequest, match=r"^variables: the character U\+0000"):
        rendering.render(bodied, {"v": "a\0b"})


def test_a_small_template_cannot_blow_up_and_unprintable_numbers_are_refused() -> None:
    with pytest.raises(errors.PayloadTooLarge, match=r"^text: "):
        rendering.render(template(text="{{a}}" * 50_000), {"a": "x" * 1_000_000})
    for value in (10**5000, float("nan"), float("inf")):
        with pytest.raises(errors.InvalidRequest, match=r"^variables: "):
            rendering.render(template(text="{{a}}"), {"a": value})


def test_a_draft_is_rendered_without_being_saved_and_refused_as_saving_it_would_be() -> None:
    rendered = templates.render_draft(subject="Hi {{a}}", text="", html="<b>{{a}}</b>", variables={"a": "<"})
    assert rendered == rendering.Rendered("Hi <", None, "<b>&lt;</b>")
    for change, sentence in (
        ({"subject": ""}, "subject: has 0 characters"),
        ({"html": ""}, "text: give at least one of text and html"),
        ({"html": "{% x %}"}, "html: '{% x %}' in line 1 is not a placeholder"),
        ({"html": "{{b}}"}, "variables: 'b' is missing"),
    ):
        members = {"subject": "Hi", "text": "", "html": "x", **change}
        with pytest.raises(errors.InvalidRequest, match=f"^{re.escape(sentence)}"):
            templates.render_draft(**members, variables={})


@hypothesis.given(strategies.dictionaries(strategies.sampled_from("abc"), strategies.text(max_size=20)))
def test_rendering_gives_text_or_a_refusal(values: dict[str, str]) -> None:
    try:
        rendered = rendering.render(template("s {{a}}", "{{b}}", "<i>{{c}}</i>"), values)
    except errors.PostroadError:
        return
    assert rendered.text == values["b"]
    assert rendered.html is not None
    assert re.fullmatch(r"<i>[^<>\"']*</i>", rendered.html)


def test_sections_take_lists_and_objects_and_missing_names_of_all_parts_are_named() -> None:
    order = template("{{#paid}}Paid{{/paid}}", "{{#items}}{{.}},{{/items}}", "{{#user}}{{name}}{{/user}}")
    rendered = rendering.render(order, {"paid": True, "items": ["<a>", 2], "user": {"name": "<Ada>"}})
    assert rendered == rendering.Rendered("Paid", "<a>,2,", "&lt;Ada&gt;")
    with pytest.raises(errors.InvalidRequest, match=r"^variables: 'paid', 'items', 'user' are missing$"):
        rendering.render(order, {})
    with pytest.raises(errors.InvalidRequest, match=r"^variables: the template takes more than 100000 steps"):
        rendering.render(template(text="{{#a}}{{#a}}{{#a}}x{{/a}}{{/a}}{{/a}}"), {"a": list(range(1, 200))})


async def test_a_template_is_saved_replaced_previewed_sent_and_removed(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    theirs = await templates.put(ctx, other.id, "welcome", subject="Theirs", text="x", html=None)
    first = await templates.put(ctx, account_id, "welcome", subject="One", text="x", html="<p>x</p>")
    assert first == await templates.find(ctx, account_id, "welcome")
    clock.pass_seconds(60)
    second = await templates.put(ctx, account_id, "welcome", subject="Hi {{b}}", text="", html="<b>{{b}} {{a}}</b>")
    assert (second.id, second.created_at, second.updated_at) == (first.id, first.created_at, clock.now)
    assert (second.subject, second.text, second.html) == ("Hi {{b}}", None, "<b>{{b}} {{a}}</b>")
    assert await templates.find(ctx, account_id, "welcome") == second
    assert await templates.names(ctx, second) == ["b", "a"]
    values = {"a": "A&B", "b": "Ada"}
    previewed = await templates.preview(ctx, account_id, "welcome", values)
    assert previewed == rendering.Rendered("Hi Ada", None, "<b>Ada A&amp;B</b>")
    await accepted_mail.allow_sending(ctx, account_id)
    message: dict[str, Any] = {"subject": None, "text": None, "template": "welcome"}
    assert await accepted_mail.accept(ctx, account_id, **message, variables=values)
    await templates.remove(ctx, account_id, "welcome")
    for attempt in (templates.find(ctx, account_id, "welcome"), templates.remove(ctx, account_id, "welcome")):
        with pytest.raises(errors.NotFound):
            await attempt
    assert await templates.find(ctx, other.id, "welcome") == theirs


NO_TEMPLATES: list[tuple[str, dict[str, str | None]]] = [
    ("alias", {"alias": ""}),
    ("alias", {"alias": "a" * 65}),
    ("alias", {"alias": "Welcome"}),
    ("alias", {"alias": "a b"}),
    ("alias", {"alias": "a\n"}),
    ("alias", {"alias": "a\0"}),
    ("alias", {"alias": "../x"}),
    ("subject", {"subject": ""}),
    ("subject", {"subject": "x" * 501}),
    ("subject", {"subject": "a\nb"}),
    ("subject", {"subject": "a\r\nBcc: x"}),
    ("subject", {"subject": "a\0"}),
    ("subject", {"subject": "a\u2028b"}),
    ("subject", {"subject": "\ud800"}),
    ("subject", {"subject": "{{ 7*7 }}"}),
    ("subject", {"subject": "{{"}),
    ("text", {"text": None}),
    ("text", {"text": ""}),
    ("text", {"text": "", "html": ""}),
    ("text", {"text": "a\0"}),
    ("text", {"text": "\udfff"}),
    ("text", {"text": "{{ ''.__class__.__mro__ }}"}),
    ("text", {"text": "{{ x|attr('__init__') }}"}),
    ("text", {"text": "{% set f='{0.__class__}'.format %}"}),
    ("text", {"text": '{{ env "DB_PASSWORD" }}'}),
    ("text", {"text": "{{}}"}),
    ("text", {"text": "{{a\n}}"}),
    ("text", {"text": "{{#a}}"}),
    ("html", {"html": "{{#a}}{{/b}}"}),
    ("html", {"html": "{{#if a}}{{/if}}"}),
    ("text", {"text": "x" * ((256 * 1024) + 1)}),
    ("html", {"html": "a\0"}),
    ("html", {"html": "{% include '/etc/passwd' %}"}),
    ("html", {"html": "{{ cycler.__init__.__globals__ }"}),
    ("html", {"html": "x" * ((256 * 1024) + 1)}),
]


async def test_what_breaks_a_rule_is_refused_naming_the_field(ctx: context.Context, account_id: str) -> None:
    for field, change in NO_TEMPLATES:
        fields: dict[str, str | None] = {"alias": "welcome", "subject": "Hello", "text": "x", "html": None, **change}
        with pytest.raises(errors.InvalidRequest, match=rf"^{field}: "):
            await templates.put(ctx, account_id, **fields)  # type: ignore[arg-type]
    assert await templates.summaries(ctx, account_id, "", 10) == []


async def test_the_largest_template_is_taken(ctx: context.Context, account_id: str) -> None:
    body = "ü" * (256 * 1024)
    await templates.put(ctx, account_id, "a" * 64, subject="x" * 500, text=body, html=body)
    assert (await templates.find(ctx, account_id, "a" * 64)).html == body


async def test_the_list_comes_in_parts_by_alias(ctx: context.Context, account_id: str) -> None:
    for alias in ("c", "a_", "a-", "b"):
        await templates.put(ctx, account_id, alias, subject=alias, text="x", html=None)
    first = await templates.summaries(ctx, account_id, "", 2)
    rest = await templates.summaries(ctx, account_id, first[-1].alias, 10)
    assert [(one.alias, one.has_text, one.has_html) for one in first + rest] == [
        (alias, True, False) for alias in ("a-", "a_", "b", "c")
    ]


@pytest.mark.parametrize(
    "text, values, rendered, is_threaded",
    [
        ("{{name}}" * 1_000, {"name": "A"}, "A" * 1_000, False),
        ("{{name}}" * 1_001, {"name": "A"}, "A" * 1_001, True),
        ("{{#items}}{{.}};{{/items}}", {"items": [1, 2]}, "1;2;", True),
        ("{{#items}}{{.}};{{/items}}", {"items": False}, "", False),
    ],
    ids=["a thousand", "more", "a list", "no list"],
)
async def test_a_costly_preview_does_not_delay_others(
    ctx: context.Context,
    account_id: str,
    text: str,
    values: dict[str, Any],
    rendered: str,
    is_threaded: bool,  # noqa: FBT001
) -> None:
    await templates.put(ctx, account_id, "welcome", subject="Hi", text=text, html=None)
    threads = compat_client.CountedThreads()
    watched = dataclasses.replace(ctx, threads=threads)  # type: ignore[arg-type]
    assert (await templates.preview(watched, account_id, "welcome", values)).text == rendered
    assert threads.parties == ([account_id] if is_threaded else [])


@pytest.mark.parametrize("alias", ["theirs", "unknown", "", "Theirs", "a\0b", "%", "x" * 1000])
async def test_a_template_that_is_unknown_or_of_another_account_does_not_exist(
    ctx: context.Context, account_id: str, alias: str
) -> None:
    other = await accounts.create(ctx, "Other")
    await templates.put(ctx, other.id, "theirs", subject="Secret", text="x", html=None)
    for attempt in (
        templates.find(ctx, account_id, alias),
        templates.remove(ctx, account_id, alias),
        templates.preview(ctx, account_id, alias, {}),
    ):
        with pytest.raises(errors.NotFound, match="no such template in this account"):
            await attempt
    assert await templates.summaries(ctx, account_id, "", 10) == []
    assert (await templates.find(ctx, other.id, "theirs")).subject == "Secret"


# A template with tens of thousands of tags takes a quarter of a second to parse: never on the event loop.

MANY_TAGS = "{{#a}}{{/a}}" * 2_000


@pytest.fixture
def parsed_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the event loop's own thread parses."""
    found: list[str] = []
    parse = mustache.parse

    def watched(source: str) -> mustache.AnyTemplate:
        if threading.current_thread() is threading.main_thread() and len(source) >= len(MANY_TAGS):
            found.append(source)
        return parse(source)

    monkeypatch.setattr(mustache, "parse", watched)
    return found


async def test_a_large_template_is_saved_shown_edited_and_used_without_the_event_loop(
    ctx: context.Context, account_id: str, parsed_on_the_loop: list[str]
) -> None:
    layout = MANY_TAGS + "{{> content}}"
    await templates.put(ctx, account_id, "layout", subject="Layout", text=layout, html=layout)
    content = templates.Content("Hello", "{{a}}", None, "layout")
    saved = await templates.save(ctx, account_id, "hello", content)
    await template_drafts.save(ctx, account_id, "hello", content)
    assert await templates.names(ctx, await templates.find(ctx, account_id, "layout")) == ["a"]
    assert (await templates.preview(ctx, account_id, "hello", {"a": "b"})).text == "b"
    assert saved.uses == " layout "
    assert parsed_on_the_loop == []
