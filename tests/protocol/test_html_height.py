"""About how tall a message is in its frame."""

import pytest

from postroad.protocol.text import html_height

TABLE = (
    '<table><tr><td style="padding:24px"><h1>Welcome</h1><p>Thanks for joining us. Please confirm your address so that '
    'we know that it is yours.</p></td></tr><tr><td style="padding: 12px">Shop Ltd, 1 High Street</td></tr></table>'
)


# What Chromium measures, in pixels.
@pytest.mark.parametrize(
    "source, measured",
    [
        ("<p>Hello Ada,</p><p>your order 4711 is on its way.</p>", 76),
        ("<style>" + "p{color:red}" * 400 + "</style><h1>Large words</h1>", 66),
        ("<p>" + "Some words of prose that go on. " * 40 + "</p>", 294),
        ("<ul>" + "<li>item of a list</li>" * 6 + "</ul>", 132),
        ("<table>" + "<tr><td>Thing</td><td>2</td><td>4.00</td></tr>" * 6 + "</table>", 150),
        ("Hello<br>Ada<br><br>Bye", 88),
        ('<img src="x" height="120" width="300"><p>x</p>', 178),
        (TABLE, 200),
    ],
)
def test_a_frame_is_about_as_tall_as_its_content(source: str, measured: int) -> None:
    assert abs(html_height.estimate(source, width=600) - measured) <= 60


def test_a_frame_has_a_least_and_a_largest_height() -> None:
    assert html_height.estimate("", width=600) == 60
    assert html_height.estimate("<p>x</p>" * 100_000, width=600) == 600
    assert html_height.estimate('<div style="display: none"><img height="9x"></div>', width=600) == 60


def test_a_narrow_frame_is_taller() -> None:
    prose = "<p>" + "Some words of prose. " * 40 + "</p>"
    assert html_height.estimate(prose, width=375) > html_height.estimate(prose, width=600) + 60


def test_of_many_elements_without_height_the_first_are_looked_at() -> None:
    empty = "<b></b>" * (html_height.MAX_TOKENS // 2)
    tall = "<p>x</p>" * 100
    assert html_height.estimate(tall, width=600) == html_height.MAX_HEIGHT
    assert html_height.estimate(empty + tall, width=600) < 100
