"""Replies on the wire: short lines, one code, and never a second reply that a text has forged."""

import hypothesis
from hypothesis import strategies

from postroad.protocol.smtp import server_replies, values


def test_a_reply_is_a_line_with_its_codes() -> None:
    assert server_replies.encode(values.Reply(250, "OK", "2.0.0")) == b"250 2.0.0 OK\r\n"
    assert server_replies.encode(values.Reply(354, "go on")) == b"354 go on\r\n"
    assert server_replies.encode(values.Reply(334, "")) == b"334 \r\n"


def test_what_cannot_stand_in_a_reply_is_replaced() -> None:
    assert server_replies.encode(values.Reply(550, "no\r\n250 yes, Jürgen\0", "5.1.1")) == (
        b"550 5.1.1 no?250 yes, J?rgen?\r\n"
    )
    assert server_replies.encode_lines(250, ["a\r\nb", "c"]) == b"250-a?b\r\n250 c\r\n"


@hypothesis.given(strategies.text(max_size=3000))
def test_a_long_text_becomes_lines_of_one_reply(text: str) -> None:
    lines = server_replies.encode(values.Reply(550, text, "5.7.1")).split(b"\r\n")
    assert lines.pop() == b""
    assert all(len(line) <= 510 for line in lines)
    assert [line[:10] for line in lines] == [b"550-5.7.1 "] * (len(lines) - 1) + [b"550 5.7.1 "]
