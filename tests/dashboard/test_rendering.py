"""The words that pages share, and what happens to text of others."""

import re

import jinja2
import markupsafe
import pytest

from postroad.dashboard.framework import site

SECOND = 1_000_000


@pytest.mark.parametrize("hidden", ["\0", "\x1b", "\x7f", "\x85", "\u200b", "\u202e", "\u2066", "\u2028", "\ufeff"])
def test_what_cannot_be_seen_is_shown_as_a_sign(hidden: str) -> None:
    assert site.plain(f"a{hidden}b") == "a\ufffdb"


def test_text_that_can_be_seen_stays_as_it_is() -> None:
    for text in ("é☃ 漢字 עברית", "two\nlines\tand a tab", "<b>", ""):
        assert site.plain(text) == text


def test_a_moment_is_markup_of_ours() -> None:
    shown = site.when(1_800_000_000 * SECOND)
    assert isinstance(shown, markupsafe.Markup)
    assert 'datetime="2027-01-15T08:00:00.000Z" title="2027-01-15 08:00:00 UTC">2027-01-15 08:00:00<' in shown
    assert "never" in site.when(None)


def test_lists_show_roughly_how_long_ago() -> None:
    shown = site.ago(0, 200 * SECOND)
    assert (
        shown == '<time datetime="1970-01-01T00:00:00.000Z" title="1970-01-01 00:00:00 UTC" data-ago>3 min ago</time>'
    )
    said = {
        4: "now",
        5: "5 s ago",
        59: "59 s ago",
        60: "1 min ago",
        7_199: "1 h ago",
        90_000: "1 d ago",
        -120: "in 2 min",
    }
    assert {seconds: site.short_ago(0, seconds * SECOND) for seconds in said} == said
    assert "never" in site.ago(None, 0)


def test_spans_are_said_in_the_largest_unit_that_fits() -> None:
    reported = {0: "a moment", 1: "1 second", 59: "59 seconds", 60: "1 minute", 7_200: "2 hours", 90_000: "1 day"}
    assert {seconds: site.duration(seconds) for seconds in reported} == reported
    assert site.relative_time(0, 61 * SECOND) == "1 minute ago"
    assert site.relative_time(61 * SECOND, 0) == "in 1 minute"


def test_numbers_can_be_read() -> None:
    assert site.number(1_234_567) == "1,234,567"
    assert [site.size(value) for value in (0, 1_023, 1_536, 5 * 1024 * 1024)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 MiB",
    ]
    assert [site.percent(*pair) for pair in ((0, 0), (0, 3), (1, 3), (3, 3))] == ["none", "0%", "33.3%", "100%"]
    assert [site.milliseconds(value) for value in (1_500, 250_000, 1_500_000)] == ["2 ms", "250 ms", "1.5 s"]
    assert site.humanize("read_only") == "read only"
    assert site.humanize("api_key: created") == "API key: created"


def test_values_are_escaped_and_a_missing_one_is_a_bug(prepared: site.Site) -> None:
    values = {
        "title": "<i>",
        "message": "<b>",
        "code": "x",
        "request_id": "req",
        "is_noted": False,
        "retry_after": None,
        "can_resubmit": False,
        "can_confirm": False,
        "section": None,
    }
    page = prepared.pages.render("error.html", values).decode()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    with pytest.raises(jinja2.UndefinedError):
        prepared.pages.render("error.html", {})


def test_no_page_says_that_a_value_is_safe(prepared: site.Site) -> None:
    environment = jinja2.Environment(loader=jinja2.PackageLoader("postroad.dashboard", "pages"), autoescape=True)
    assert environment.loader is not None
    for name in prepared.pages.names:
        source, _, _ = environment.loader.get_source(environment, name)
        assert "|safe" not in source.replace(" ", ""), name
        assert "autoescape" not in source, name
        # Without quotes around it, a value could begin an attribute of its own.
        assert not re.search(r"\s[\w-]+\s*=\s*\{\{", source), name


def test_a_sentence_has_a_capital_and_a_full_stop_and_a_field_keeps_its_name() -> None:
    assert site.sentence("being sent") == "Being sent."
    assert site.sentence("example.net asked us to try later") == "example.net asked us to try later."
    assert site.sentence("delivery.hostname: has no dot.") == "delivery.hostname: has no dot."
    assert site.error_sentence("this form has expired") == "This form has expired."
    assert site.error_sentence("email: is not valid") == "email: is not valid"
    assert site.error_sentence("events[0]: must be one of") == "events[0]: must be one of"
