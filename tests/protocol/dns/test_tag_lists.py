"""Lists of tags are read as receivers read them; anything else is none."""

import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.dns import tag_lists


def test_names_and_values_are_read_in_their_order_and_without_the_blanks_around_them() -> None:
    tags = tag_lists.parse(" v = DKIM1 ;\tk=rsa;p= MIIB IjAN ; n=a=b;")
    assert tags == {"v": "DKIM1", "k": "rsa", "p": "MIIB IjAN", "n": "a=b"}
    assert list(tags) == ["v", "k", "p", "n"]


def test_a_value_may_be_empty() -> None:
    assert tag_lists.parse("p=") == {"p": ""}


@pytest.mark.parametrize("text", ["", ";", "v", "v=1;;p=2", "=1", "v=1; v=2", "1v=2", "a-b=1", "v=1; p", "x" * 70_000])
def test_what_is_no_list_is_none(text: str) -> None:
    assert tag_lists.parse(text) is None


@hypothesis.given(strategies.text(alphabet="vp=; \tD1a\x00é", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    tags = tag_lists.parse(text)
    assert tags is None or all(name.isascii() and name for name in tags)
