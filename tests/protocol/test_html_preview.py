"""HTML is written anew: what shows stays, what runs, loads or leads away goes, and every tag is one that was checked.

That a browser does nothing with the result is shown in tests/security/test_previews.py.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.text import html_preview
from tests.security import hostile_html

PIXEL = "data:image/gif;base64,AAAA"
TAG = re.compile(r"<(/?)([a-z][a-z0-9:_-]*)((?: [a-z][a-z0-9:_-]*(?:=\"[^\"<>]*\")?)*)>")
ATTRIBUTE = re.compile(r" ([a-z][a-z0-9:_-]*)(?:=\"([^\"<>]*)\")?")


def image(content_id: str) -> str | None:
    return PIXEL if content_id == "logo@x" else None


def rendered(html: str) -> str:
    """What follows our own style."""
    before, style, after = html_preview.render(html, image).partition(html_preview.STYLE)
    assert style
    assert before in {"", "<!doctype html>"}
    return after


@pytest.mark.parametrize(
    "html",
    [
        "",
        "plain &amp; &lt;simple&gt; ü 🎉",
        '<p class="a" style="color:red">x</p>',
        '<table width="600" cellpadding="0"><tr><td align="center">x</td></tr></table>',
        '<a name="top"></a><a href="#top">up</a>',
        f'<img src="{PIXEL}" alt="a &quot;b&quot;" width="1">',
        "<style>@media (max-width:600px){p{color:red}}</style>",
        '<svg viewbox="0 0 9 9"><path d="M0 0"></path></svg>',
    ],
)
def test_harmless_html_stays_as_it_is(html: str) -> None:
    assert rendered(html) == html


@pytest.mark.parametrize(
    "html, result",
    [
        ("<P CLASS=a ID='b'>x</P >", '<p class="a" id="b">x</p>'),
        ("<br/><hr />", "<br><hr>"),
        ("1 < 2 <3 <", "1 &lt; 2 &lt;3 &lt;"),
        ("a<!-- <b> -->c<!x>d<?y?>e</>f", "acdef"),
        ("a<!-->b<!--->c<!-- never closed", "abc"),
        ("<script>a<b</script>c<SCRIPT >d</SCRIPT x>e<script>f", "ce"),
        ("<title>x</title><xmp><b></xmp>y", "y"),
        ("<form action=x><input name=y></form>", '<input name="y">'),
        ("<meta charset=utf-8><base href=x><link rel=y>z", "z"),
        ("<p onclick=x ONLOAD=y title=z>", '<p title="z">'),
        ("<p title='\"><script>'>", '<p title="&quot;&gt;&lt;script&gt;">'),
        ("<b <i>x", "<b>x"),
        ("x<b never=closed", "x"),
        ("<a<b>x", "x"),
        ("<p style='x' \0=y ü=z>", '<p style="x">'),
        ("<style><!-- p{content:'<b>'} --></style>", r"<style> p{content:'\3c b>'} </style>"),
        ("<style>p{}", "<style>p{}</style>"),
        ("</style>x</script>", "x"),
    ],
)
def test_what_is_written_is_plain(html: str, result: str) -> None:
    assert rendered(html) == result


def test_the_doctype_decides_how_it_is_laid_out() -> None:
    assert html_preview.render("\n<!DOCTYPE html PUBLIC 'x'><p>", image).startswith("<!doctype html><style>")
    assert html_preview.render("<p><!doctype html>", image).startswith("<style>")


@pytest.mark.parametrize(
    "html, result",
    [
        ("<a href='https://x/?a=1&amp;b'>y</a>", '<a data-link title="https://x/?a=1&amp;b">y</a>'),
        ("<a title='your bank' href=//evil>y", '<a data-link title="//evil">y'),
        ("<a href=javascript:x target=_top rel=z ping=p>y", '<a data-link title="javascript:x">y'),
        ("<a href=#x href=y>", '<a href="#x" data-link title="y">'),
        ("<svg><a xlink:href=y>", '<svg><a data-link title="y">'),
        ("<p data-link title=x>", '<p title="x">'),
    ],
)
def test_a_link_leads_nowhere_and_says_where_it_led(html: str, result: str) -> None:
    assert rendered(html) == result


@pytest.mark.parametrize(
    "html, result",
    [
        ("<img src=cid:logo@x>", f'<img src="{PIXEL}">'),
        ("<IMG alt=a SRC=' CID:logo%40x '>", f'<img alt="a" src="{PIXEL}">'),
        ("<img src='cid:logo&#64;x'>", f'<img src="{PIXEL}">'),
        ("<td background='cid:logo@x'>", f'<td background="{PIXEL}">'),
        ("<img src=cid:other alt=a>", '<img alt="a">'),
        ("<img src=https://x/y.png srcset='z 2x' alt=a>", '<img alt="a">'),
        ("<p style=\"background:url('cid:logo@x') red\">", f'<p style="background:url({PIXEL}) red">'),
        ("<p style='background:url(&quot;cid:logo@x&quot;)'>", f'<p style="background:url({PIXEL})">'),
        ('<style>p{background:URL( "cid:logo@x" )}</style>', f"<style>p{{background:url({PIXEL})}}</style>"),
        ("<p style='background:url(cid:other)'>", '<p style="background:url()">'),
        ("cid:logo@x url(cid:logo@x)", "cid:logo@x url(cid:logo@x)"),
    ],
)
def test_images_of_the_message_take_their_places(html: str, result: str) -> None:
    assert rendered(html) == result


DROPPED_ELEMENTS = [
    *("animate", "animatecolor", "animatemotion", "animatetransform", "applet", "base", "button", "embed"),
    *("fencedframe", "form", "frame", "frameset", "link", "meta", "object", "param", "plaintext", "portal", "set"),
]
EMPTIED_ELEMENTS = ["iframe", "noembed", "noframes", "script", "title", "xmp"]
DROPPED_ATTRIBUTES = [
    *("accesskey", "action", "archive", "attributionsrc", "autofocus", "autoplay", "browsingtopics", "classid", "code"),
    *("codebase", "contenteditable", "formaction", "http-equiv", "imagesrcset", "is", "manifest", "nonce", "ping"),
    *("popover", "profile", "rel", "srcdoc", "srcset", "tabindex", "target", "usemap", "xml:base", "onclick"),
]
LINKING_ATTRIBUTES = ["href", "xlink:href"]
LOADING_ATTRIBUTES = ["background", "cite", "data", "dynsrc", "icon", "longdesc", "lowsrc", "poster", "src"]


@pytest.mark.parametrize("name", DROPPED_ELEMENTS)
def test_an_element_that_loads_runs_or_leads_elsewhere_goes_and_its_content_stays(name: str) -> None:
    assert rendered(f"<b>x</b><{name} title=y>z</{name}>") == "<b>x</b>z"


@pytest.mark.parametrize("name", EMPTIED_ELEMENTS)
def test_an_element_whose_content_is_not_shown_goes_with_it(name: str) -> None:
    assert rendered(f"x<{name} title=y>z</{name}>w") == "xw"


@pytest.mark.parametrize("name", DROPPED_ATTRIBUTES)
def test_an_attribute_that_loads_runs_or_leads_elsewhere_goes(name: str) -> None:
    assert rendered(f"<input {name}=x {name.upper()}='y' name=z>") == '<input name="z">'


@pytest.mark.parametrize("name", LOADING_ATTRIBUTES)
def test_an_attribute_that_loads_keeps_only_an_image_of_the_message(name: str) -> None:
    html = f"<p {name}=https://example.net/x.png><p {name}=cid:logo@x>"
    assert rendered(html) == f'<p><p {name}="{PIXEL}">'


def assert_safe(html: str) -> None:
    """Every `<` begins a tag of ours, and none of them is one that we leave out."""
    for piece in re.split(r"(?=<)", rendered(html)):
        if not piece.startswith("<"):
            continue
        tag = TAG.match(piece)
        assert tag is not None, piece
        assert tag[2] not in {*DROPPED_ELEMENTS, *EMPTIED_ELEMENTS}
        for name, value in ATTRIBUTE.findall(tag[3]):
            assert not name.startswith("on")
            assert name not in DROPPED_ATTRIBUTES
            assert name not in LINKING_ATTRIBUTES or value.startswith("#")
            assert name not in LOADING_ATTRIBUTES or value.lower().startswith("data:image/")


HOSTILE = {**hostile_html.BY_ITSELF, **hostile_html.BY_STYLE, **hostile_html.BY_CLICK}
PIECES = [
    *"<>/=\"' !-?&;#aX\0\n",
    *"<!-- --> --!> <![CDATA[ ]]> <script </script> <style> </style> <svg> <a href= onx= src= cid:logo@x <p".split(),
    *"</title> <title> <textarea> <plaintext> <noscript> <math> url(cid: data:image/png, javascript: <!doctype".split(),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_html_has_no_tag_that_was_not_checked(name: str) -> None:
    assert_safe(HOSTILE[name])


@given(st.text(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_no_text_has_a_tag_that_was_not_checked(html: str) -> None:
    assert_safe(html)


@given(st.lists(st.sampled_from([*HOSTILE.values(), *PIECES]), max_size=12).map("".join))
def test_pieces_of_hostile_html_have_no_tag_that_was_not_checked(html: str) -> None:
    assert_safe(html)


# Anything that is not linear takes minutes for these.
@pytest.mark.parametrize(
    "piece",
    [
        "<", "<a", "<a ", "<a =", '<a="', "<a b='", "<!--", "</", "&", "&#9", "<style>", "<script>", "</style>",
        "<style></style>", "= ", "<b>", "<a x=y ", "url(cid:", "<p style='url(cid:", "<img src=cid:a>", "\0", "<svg/",
    ],
)  # fmt: skip
def test_a_bomb_is_written_in_one_pass(piece: str) -> None:
    html = piece * (150_000 // len(piece))
    assert len(html_preview.render(html, image)) < 5 * len(html)
    assert len(html_preview.render("<style>" + html, image)) < 5 * len(html)
    assert len(html_preview.render(f"<p {html}>", image)) < 5 * len(html)


SCHEMES = "<style>@media ( Prefers-Color-Scheme : DARK ){p{color:red}}@media not (prefers-color-scheme:light){}</style>"


def test_a_preferred_scheme_is_the_one_of_the_preview_whatever_the_browser_has() -> None:
    assert rendered(SCHEMES) == "<style>@media ( max-width:0 ){p{color:red}}@media not (min-width:0){}</style>"
    dark = html_preview.render(SCHEMES, image, is_dark=True)
    assert dark.startswith("<style>html{background:#121212;color:#e8e6e3;color-scheme:dark!important}")
    assert dark.endswith("<style>@media ( min-width:0 ){p{color:red}}@media not (max-width:0){}</style>")
    assert "darkish" in rendered("<style>@media (prefers-color-scheme:darkish){}</style>")


def test_a_style_sheet_keeps_its_medium_and_no_other_attribute() -> None:
    html = '<style type=x onload=alert(1) media="(prefers-color-scheme: dark)">p{color:red}</style>'
    assert rendered(html) == '<style media="(max-width:0)">p{color:red}</style>'
    assert rendered("<style media='\"><script>'>p{}</style>") == '<style media="&quot;&gt;&lt;script&gt;">p{}</style>'
