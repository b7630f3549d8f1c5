"""What HTML uses is found by name and line, in whatever it is written, and within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.text import html_usage


class Everything:
    """All keys are known."""

    def __contains__(self, key: object) -> bool:
        return True


ALL = Everything()


def lines(html: str) -> dict[str, list[int]]:
    return html_usage.scan(html, ALL).lines


@pytest.mark.parametrize(
    "html, keys",
    [
        ("<VIDEO Src=x>", {"tag:video", "attribute:src"}),
        ("<input type=Checkbox>", {"tag:input", "attribute:type", "type:checkbox"}),
        ('<meta name="color-scheme">', {"tag:meta", "attribute:name", "meta:color-scheme"}),
        ("<img src='a.WEBP?x=1' alt>", {"tag:img", "attribute:src", "attribute:alt", "image:webp"}),
        ("<p style='display: FLEX'>", {"tag:p", "attribute:style", "property:display"}),
        ("<style>@media (hover) and (max-width: 9px) {}</style>", {"tag:style", "at:media", "media:hover"}),
        ("<style>a:hover > b::before, i + u {}</style>", {"pseudo:hover", "pseudo:before", "selector:>", "selector:+"}),
        ("<style>a:nth-child(2n+1) {}</style>", {"tag:style", "pseudo:nth-child"}),
        ("<style>@import url(x.css);p{gap:1VW}</style>", {"at:import", "property:gap", "unit:vw"}),
        ("<style>p{width:calc(100% - 2em)!important}</style>", {"function:calc", "unit:%", "unit:em"}),
        ("<style>p{--own: 1px;color:initial}</style>", {"property:--", "keyword:initial"}),
        ("<style>@media x{p{gap:0}}</style>", {"at:media", "property:gap"}),
    ],
)
def test_what_is_used_has_a_key(html: str, keys: set[str]) -> None:
    assert keys <= lines(html).keys()


@pytest.mark.parametrize(
    "html, absent",
    [
        ("<!-- <video> -->", "tag:video"),
        ("<script><video></script>", "tag:video"),
        ("<style>/* gap: 1vw; */ p{color:'gap:1'}</style>", "property:gap"),
        ("<style>p{background:url(data:x;gap:1vw)}</style>", "property:gap"),
        ("<p style='color:#1em'>", "unit:em"),
        ("<style>a:nth-child(2n+1) {}</style>", "selector:+"),
        ("gap: 1vw", "property:gap"),
    ],
)
def test_what_is_only_text_is_not_used(html: str, absent: str) -> None:
    assert absent not in lines(html)


def test_a_keyword_is_noted_with_its_property() -> None:
    assert lines("<p style='display:inline-flex'>")["keyword:display:inline-flex"] == [1]


def test_lines_are_those_of_the_source_and_only_the_first() -> None:
    html = "<p>\n<style>\n\n  p { color: red;\n gap: 1px }\n</style>\n" + "<b>\n" * 9
    found = lines(html)
    assert found["property:color"] == [4]
    assert found["property:gap"] == [5]
    assert found["tag:b"] == [7, 8, 9, 10, 11]


def test_only_known_keys_are_noted() -> None:
    assert html_usage.scan("<video><audio>", {"tag:audio"}).lines == {"tag:audio": [1]}


def test_links_have_their_text_and_images_count() -> None:
    html = """<a href=" https://a.example/?x=1&amp;y=2 ">Read <b>more</b>
      &amp; buy<img src=x alt="Logo"></a><a name=x>none</a><area href=map><a href="">open<img src=y>"""
    usage = html_usage.scan(html, ALL)
    assert usage.links == [
        html_usage.Link("https://a.example/?x=1&y=2", "Read more & buyLogo", 1),
        html_usage.Link("map", "", 2),
        html_usage.Link("", "open", 2),
    ]
    assert (usage.images, usage.images_without_alt) == (2, 1)


def test_a_hostile_document_gives_a_small_result() -> None:
    usage = html_usage.scan("<a href=x>y</a>" * 1_000 + "".join(f"<x{number}>" for number in range(1_000)), {"tag:a"})
    assert (len(usage.links), usage.more_links) == (200, 800)
    assert usage.lines == {"tag:a": [1]}
    (link,) = html_usage.scan(f"<a href={'u' * 9_000}>{'<b>t' * 9_000}", set()).links
    assert (len(link.url), len(link.text)) == (2048, 200)


# Inputs that regular expressions could try again from every character: a test that does so does not end.
@pytest.mark.parametrize(
    "part",
    [
        "-",
        "1.",
        "+1.",
        ":a",
        "( ",
        "(()",
        '"\\',
        "'\\",
        "/*",
        "url(",
        "a(",
        "<",
        "<!--",
        "=",
        '="',
        "&#1",
        "\n;a:b",
        "@",
    ],
)
@pytest.mark.parametrize("begin", ["", "<style>", '<p style="a:'])
def test_the_time_is_linear(part: str, begin: str) -> None:
    html_usage.scan(begin + part * (50_000 // len(part)), {"property:a"})


@given(st.text(alphabet="<>/ =\"'abp-style:;{}()@.#1%!&*\\\n", max_size=200))
def test_any_text_is_scanned(text: str) -> None:
    html_usage.scan(text, ALL)
    html_usage.scan(f"<style>{text}", ALL)
    html_usage.scan(f"<p style='{text}", ALL)
