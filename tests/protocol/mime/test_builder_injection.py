"""No string that a caller gives can add a header, a part or a command: every field, every trick."""

from collections.abc import Callable

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import address, builder
from tests.protocol import stdlib_parser

BREAKS = ["\r\n", "\n", "\r", "\0", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\ud800"]
TRICKS = [f"x{line_break}Bcc: victim@example.org" for line_break in BREAKS] + [
    "x\r\n\r\n<script>",
    "x\r\n Bcc: victim@example.org",
    "x\n\tBcc: victim@example.org",
    "=?utf-8?q?=0D=0ABcc:_victim@example.org?=",
    "=?UTF-8?B?DQpCY2M6IHZpY3RpbUBleGFtcGxlLm9yZw==?=",
    "a =?iso-8859-1*en?Q?=0A?= b",
    "=??q?=0A?=",
    "x=?utf-8?q?\r\nBcc:?=",
    "x\x7f",
    "x\x9f",
]


def hand_made(**parts: str) -> address.Mailbox:
    """A mailbox that no parser has seen."""
    return address.Mailbox(**({"display_name": None, "local": "a", "domain": "b.example", "written": ""} | parts))  # type: ignore[arg-type]


def file(**fields: str) -> builder.Attachment:
    given = {"filename": "a.txt", "content_type": "text/plain", "content": b"x"}
    return builder.Attachment(**(given | fields))  # type: ignore[arg-type]


FIELDS: dict[str, Callable[[str], dict[str, object]]] = {
    "subject": lambda trick: {"subject": trick},
    "from name": lambda trick: {"from_": hand_made(display_name=trick)},
    "from local part": lambda trick: {"from_": hand_made(local=trick)},
    "from domain": lambda trick: {"from_": hand_made(domain=trick)},
    "to name": lambda trick: {"to": [hand_made(display_name=trick)]},
    "to local part": lambda trick: {"to": [stdlib_parser.RECIPIENT, hand_made(local=trick)]},
    "cc name": lambda trick: {"cc": [hand_made(display_name=trick)]},
    "cc domain": lambda trick: {"cc": [hand_made(domain=trick)]},
    "reply_to name": lambda trick: {"reply_to": [hand_made(display_name=trick)]},
    "reply_to local part": lambda trick: {"reply_to": [stdlib_parser.RECIPIENT, hand_made(local=trick)]},
    "header value": lambda trick: {"headers": [("X-A", trick)]},
    "header name": lambda trick: {"headers": [(trick, "x")]},
    "list header value": lambda trick: {"headers": [("List-Unsubscribe", trick)]},
    "message id": lambda trick: {"message_id": trick},
    "filename": lambda trick: {"attachments": [file(filename=trick)]},
    "long filename": lambda trick: {"attachments": [file(filename=trick + "ü" * 100)]},
    "content_type": lambda trick: {"attachments": [file(content_type=trick)]},
    "content_type's parameter": lambda trick: {"attachments": [file(content_type=f"text/plain; a={trick}")]},
    "content_type's quoted parameter": lambda trick: {"attachments": [file(content_type=f'text/plain; a="{trick}"')]},
    "content_id": lambda trick: {"html": "h", "attachments": [file(content_id=trick)]},
}


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("field", FIELDS)
def test_no_trick_passes_in_any_field(field: str, trick: str) -> None:
    with pytest.raises(builder.MimeError) as caught:
        builder.build(stdlib_parser.message(**FIELDS[field](trick)))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("trick", ["x, y@example.org", "x>,<y@example.org", "x>", "x y", "x;y", 'x"', "x(y)", "x@y"])
@pytest.mark.parametrize("part", ["local", "domain"])
def test_an_address_cannot_smuggle_another_one_in(part: str, trick: str) -> None:
    with pytest.raises(builder.MimeError, match=r"^to: "):
        builder.build(stdlib_parser.message(to=[hand_made(**{part: trick})]))


@pytest.mark.parametrize(
    "name", ["a\u202etxt.exe", "a\u2066b", "../../etc/cron.d/x", "C:\\x", "a/b", "..", ".", "", "a\tb"]
)
def test_a_file_name_with_a_path_or_turned_text_is_refused(name: str) -> None:
    with pytest.raises(builder.MimeError, match=r"^attachments\[0\].filename: "):
        builder.build(stdlib_parser.message(attachments=[file(filename=name)]))


@pytest.mark.parametrize("name", ["a\u202eb", "a\u2069b", "a\tb"])
def test_a_display_name_with_turned_text_is_refused(name: str) -> None:
    with pytest.raises(builder.MimeError, match=r"^from: "):
        builder.build(stdlib_parser.message(from_=hand_made(display_name=name)))


@pytest.mark.parametrize("field", ["text", "html"])
def test_a_body_with_nul_or_half_a_surrogate_pair_is_refused(field: str) -> None:
    for text in ("a\0b", "a\ud800b"):
        with pytest.raises(builder.MimeError, match=f"^{field}: "):
            builder.build(stdlib_parser.message(**{field: text}))


def test_a_body_cannot_become_a_header() -> None:
    parsed = stdlib_parser.build(text="\r\nBcc: victim@example.org\r\n", html="Bcc: victim@example.org")
    assert "Bcc" not in parsed
    assert not any("Bcc" in part for part in parsed.walk())


def test_the_error_names_the_field() -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({"subject": "\n"}, "subject: "),
        ({"headers": [("X-A", "x"), ("X-B", "\n")]}, "headers['X-B']: "),
        ({"attachments": [file(), file(content_type="x")]}, "attachments[1].content_type: "),
        ({"attachments": [file(), file(content_id="<x>")]}, "attachments[1].content_id: "),
    ]
    for fields, where in cases:
        with pytest.raises(builder.MimeError) as caught:
            builder.build(stdlib_parser.message(**fields))
        assert str(caught.value).startswith(where)


ANYTHING = st.text(max_size=60) | st.text("a =?_\r\n\0:;,<>@\"'\\()/é漢\u2028\x85", max_size=40)


@hypothesis.given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, ANYTHING)))
def test_whatever_is_given_only_the_known_headers_come_out(given: dict[str, str]) -> None:
    fields: dict[str, object] = {"text": "t"}
    for name, value in given.items():
        fields |= FIELDS[name](value)
    try:
        raw = builder.build(stdlib_parser.message(**fields))
    except builder.MimeError:
        return
    known = {"from", "to", "cc", "reply-to", "subject", "date", "message-id", "mime-version", "content-type"}
    known |= {"content-transfer-encoding"} | {name.lower() for name, _ in stdlib_parser.message(**fields).headers}
    assert {name.lower() for name in stdlib_parser.parse(raw)} <= known
