"""Messages as the standard library's parser reads them: every field is read back, and nothing else."""

import email.message
import hashlib
import locale
from collections.abc import Callable

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import address, builder
from tests.protocol import stdlib_parser

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300)
LINES = st.lists(st.text("abc =.-_\té漢😀", max_size=120), max_size=12).map("\n".join)
OWN_HEADERS = ["From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"]


def normal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def content(part: email.message.Message) -> bytes:
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload


def image(name: str, content_id: str | None = None, data: bytes = b"\x89PNG") -> builder.Attachment:
    return builder.Attachment(filename=name, content=data, content_type="image/png", content_id=content_id)


def test_a_plain_message_is_as_short_as_it_can_be() -> None:
    assert builder.build(stdlib_parser.message(text="Hello\nworld\n", subject="Hi")) == (
        b"From: shop@example.com\r\n"
        b"To: user@example.org\r\n"
        b"Subject: Hi\r\n"
        b"Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"
        b"Message-ID: <em_1@example.com>\r\n"
        b"MIME-Version: 1.0\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: 7bit\r\n"
        b"\r\n"
        b"Hello\r\nworld\r\n"
    )


@pytest.mark.parametrize(
    "fields, shape",
    [
        ({"text": "t"}, "text/plain"),
        ({"html": "h"}, "text/html"),
        ({"text": "t", "html": "h"}, {"multipart/alternative": ["text/plain", "text/html"]}),
        ({"text": "t", "attachments": [image("a")]}, {"multipart/mixed": ["text/plain", "image/png"]}),
        ({"attachments": [image("a")]}, {"multipart/mixed": ["image/png"]}),
        ({"attachments": [image("a"), image("b", "b")]}, {"multipart/mixed": ["image/png", "image/png"]}),
        ({"text": "t", "attachments": [image("a", "a")]}, {"multipart/mixed": ["text/plain", "image/png"]}),
        ({"html": "h", "attachments": [image("a", "a")]}, {"multipart/related": ["text/html", "image/png"]}),
        (
            {"text": "t", "html": "h", "attachments": [image("a", "a")]},
            {"multipart/alternative": ["text/plain", {"multipart/related": ["text/html", "image/png"]}]},
        ),
        (
            {"text": "t", "html": "h", "attachments": [image("a", "a"), image("b"), image("c", "c")]},
            {
                "multipart/mixed": [
                    {
                        "multipart/alternative": [
                            "text/plain",
                            {"multipart/related": ["text/html", "image/png", "image/png"]},
                        ]
                    },
                    "image/png",
                ]
            },
        ),
    ],
)
def test_the_shape_follows_what_is_given(fields: dict[str, object], shape: object) -> None:
    parsed = stdlib_parser.build(**fields)
    assert stdlib_parser.shape(parsed) == shape
    assert not any(part.defects for part in parsed.walk())


def test_a_message_of_nothing_is_refused() -> None:
    with pytest.raises(builder.MimeError, match="needs text, html or an attachment"):
        builder.build(stdlib_parser.message(text=None))


def test_every_header_is_written_once_and_nothing_is_added() -> None:
    parsed = stdlib_parser.build()
    assert parsed.keys() == [*OWN_HEADERS, "Content-Transfer-Encoding"]
    everything = stdlib_parser.build(
        to=[stdlib_parser.RECIPIENT, address.parse("Jo <jo@example.org>")],
        cc=[address.parse("cc@example.org")],
        reply_to=[address.parse('"Help, please" <help@example.org>'), address.parse("jo@example.org")],
        headers=[("X-Service-Tag", "a"), ("X-Service-Tag", "b"), ("References", "<a@b> <c@d>")],
    )
    assert everything["To"] == "user@example.org, Jo <jo@example.org>"
    assert everything["Cc"] == "cc@example.org"
    assert everything["Reply-To"] == '"Help, please" <help@example.org>, jo@example.org'
    assert everything.get_all("X-Service-Tag") == ["a", "b"]
    assert everything["References"] == "<a@b> <c@d>"
    assert len(everything.keys()) == len(OWN_HEADERS) + 1 + 5


def test_a_message_has_no_place_for_blind_copies() -> None:
    assert "bcc" not in builder.Message.__struct_fields__
    with pytest.raises(builder.MimeError, match="headers\\['bCC'\\]: this header is generated from the other fields"):
        builder.build(stdlib_parser.message(headers=[("bCC", "x@example.org")]))


@pytest.mark.parametrize(
    "name",
    [
        *("From", "to", "CC", "Subject", "reply-to", "DATE", "Message-Id", "mime-version"),
        *("Content-Type", "content-transfer-encoding", "CONTENT-DISPOSITION", "Content-X"),
    ],
)
def test_a_header_that_the_builder_writes_or_about_the_content_cannot_be_given(name: str) -> None:
    with pytest.raises(builder.MimeError, match="generated from the other fields"):
        builder.build(stdlib_parser.message(headers=[(name, "x")]))


@pytest.mark.parametrize("name", ["List-Unsubscribe", "In-Reply-To", "references"])
def test_a_header_that_holds_no_text_takes_ascii_only(name: str) -> None:
    with pytest.raises(builder.MimeError, match="allows only ASCII"):
        builder.build(stdlib_parser.message(headers=[(name, "<https://example.com/ü>")]))


def test_a_long_list_unsubscribe_stays_whole() -> None:
    url = "<https://example.com/u/" + "0123456789" * 30 + "?a=b&c=d>"
    value = f"<mailto:unsubscribe@example.com?subject=stop>, {url}"
    raw = builder.build(stdlib_parser.message(headers=[("List-Unsubscribe", value)]))
    assert url.encode() in raw
    assert stdlib_parser.parse(raw)["List-Unsubscribe"] == value


@hypothesis.given(TEXT | LINES, TEXT | LINES)
def test_bodies_come_back_with_crlf_line_ends(text: str, html: str) -> None:
    parsed = stdlib_parser.build(text=text, html=html)
    plain, rich = parsed.iter_parts()
    assert normal(content(plain).decode()) == normal(text)
    assert normal(content(rich).decode()) == normal(html)


@hypothesis.given(TEXT | LINES)
def test_a_body_alone_comes_back_with_at_most_one_line_end_more(text: str) -> None:
    read = normal(content(stdlib_parser.build(text=text)).decode())
    assert read in {normal(text), normal(text) + "\n"}


@hypothesis.given(st.lists(st.binary(max_size=400), min_size=1, max_size=5))
def test_files_come_back_byte_for_byte(files: list[bytes]) -> None:
    attachments = [image(f"{index}.png", f"i{index}" if index % 2 else None, data) for index, data in enumerate(files)]
    parsed = stdlib_parser.build(text="t", html="h", attachments=attachments)
    found = {part.get_filename(): part for part in parsed.walk() if part.get_filename()}
    assert len(found) == len(files)
    for index, data in enumerate(files):
        part = found[f"{index}.png"]
        assert content(part) == data
        assert part["Content-ID"] == (f"<i{index}>" if index % 2 else None)
        assert part.get_content_disposition() == ("inline" if index % 2 else "attachment")


def test_the_parameters_of_a_type_are_kept_and_folded() -> None:
    kind = 'text/csv; charset=utf-8; header=present; name="a b; c.csv"; note="' + "x" * 60 + '"'
    attachment = builder.Attachment(filename="a.csv", content=b"1,2", content_type=kind)
    (part,) = stdlib_parser.build(attachments=[attachment]).iter_parts()
    assert part.get_content_type() == "text/csv"
    assert dict(part["Content-Type"].params) == {
        "charset": "utf-8",
        "header": "present",
        "name": "a b; c.csv",
        "note": "x" * 60,
    }


@pytest.mark.parametrize(
    "kind, data, written",
    [
        ("text/plain", b"a\n", "text/plain; charset=us-ascii"),
        ("text/csv", "é;ü".encode(), "text/csv; charset=utf-8"),
        ("text/csv; header=present", "é".encode(), "text/csv; header=present; charset=utf-8"),
        ("text/csv; charset=iso-8859-1", "é".encode("latin-1"), "text/csv; charset=iso-8859-1"),
        ("text/csv; CHARSET=UTF-8", b"a", "text/csv; CHARSET=UTF-8"),
        ("text/csv", "é".encode("utf-16"), "text/csv; charset=utf-16"),
        ("text/csv", "é".encode("latin-1"), "text/csv"),
        ("application/json", b"{}", "application/json"),
    ],
)
def test_a_text_file_has_the_charset_that_it_shows(kind: str, data: bytes, written: str) -> None:
    attachment = builder.Attachment(filename="a", content=data, content_type=kind)
    built = builder.build(stdlib_parser.message(attachments=[attachment]))
    assert f"\r\nContent-Type: {written}\r\n".encode() in built
    (part,) = stdlib_parser.parse(built).iter_parts()
    assert content(part) == data


def test_a_text_file_cannot_end_the_part_that_it_is_in() -> None:
    boundary = stdlib_parser.build(text="x", html="y").get_boundary()
    assert boundary is not None
    first = boundary.removesuffix("-2")
    data = f"a\r\n--{first}-3--\r\nb".encode()
    attachment = builder.Attachment(filename="a.txt", content=data, content_type="text/plain")
    _, part = stdlib_parser.build(text="t", attachments=[attachment]).iter_parts()
    assert content(part) == data


def test_a_boundary_follows_from_the_message_id_and_never_stands_in_a_body() -> None:
    first = stdlib_parser.build(text="t", html="h").get_boundary()
    assert stdlib_parser.build(text="x", html="y").get_boundary() == first
    assert stdlib_parser.build(text="x", html="y", message_id="em_2@example.com").get_boundary() != first
    hostile = f"a\n--{first}\nContent-Type: text/html\n\n<b>\n--{first}--\n"
    parsed = stdlib_parser.build(text=hostile, html="h")
    assert parsed.get_boundary() != first
    assert stdlib_parser.shape(parsed) == {"multipart/alternative": ["text/plain", "text/html"]}
    assert normal(content(next(parsed.iter_parts())).decode()) == hostile


@pytest.mark.parametrize("line_end", [b"\r\n", b"\n", b"\r"])
def test_an_attached_message_is_sent_as_it_is(line_end: bytes) -> None:
    """RFC 2046 section 5.2.1 allows no encoding for it, and its own delimiters must not end the part."""
    boundary = str(stdlib_parser.build(text="x", html="y").get_boundary())
    inner = [
        b"From: Ada <ada@example.org>",
        b"Subject: Hi",
        b'Content-Type: multipart/mixed; boundary="' + boundary.encode() + b'"',
        b"",
        *(b"--" + boundary.replace("-2", f"-{level}").encode() for level in (1, 2, 3)),
        b"",
        b"Hello",
        b"",
    ]
    file = builder.Attachment(filename="a.eml", content=line_end.join(inner), content_type="message/rfc822")
    raw = builder.build(stdlib_parser.message(text="t", html="h", attachments=[file]))
    assert b"\r\n\r\n" + b"\r\n".join(inner) + b"\r\n--=_" in raw
    (part,) = stdlib_parser.parse(raw).iter_attachments()
    assert (part.get_content_type(), part["Content-Transfer-Encoding"]) == ("message/rfc822", "7bit")
    assert part.get_filename() == "a.eml"
    nested = part.get_content()
    assert (nested["From"], nested["Subject"]) == ("Ada <ada@example.org>", "Hi")


def test_an_attached_message_that_is_not_ascii_cannot_be_built() -> None:
    file = builder.Attachment(filename="a.eml", content="Subject: ü\r\n".encode(), content_type="MESSAGE/rfc822")
    with pytest.raises(builder.MimeError, match=r"^attachments\[0\].content_type: a message/rfc822 file must be ASCII"):
        builder.build(stdlib_parser.message(attachments=[file]))


def test_a_body_that_holds_every_boundary_is_refused() -> None:
    boundaries = [
        hashlib.sha256(f"{attempt}{stdlib_parser.MESSAGE_ID}".encode()).hexdigest()[:32] for attempt in range(100)
    ]
    with pytest.raises(builder.MimeError, match="every boundary"):
        builder.build(stdlib_parser.message(text="\n".join(f"--=_{boundary}" for boundary in boundaries), html="h"))


def test_the_same_message_gives_the_same_bytes() -> None:
    fields = {"text": "ü", "html": "<p>", "attachments": [image("a", "a")]}
    assert builder.build(stdlib_parser.message(**fields)) == builder.build(stdlib_parser.message(**fields))


@hypothesis.given(st.integers(0, 253_402_300_799_999_999))
def test_the_date_is_read_back(microseconds: int) -> None:
    assert stdlib_parser.build(date=microseconds)["Date"].datetime.timestamp() == microseconds // 1_000_000


def test_the_date_does_not_follow_the_locale() -> None:
    before = locale.setlocale(locale.LC_TIME)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"):
        try:
            locale.setlocale(locale.LC_TIME, name)
        except locale.Error:
            continue
        builder.format_date.cache_clear()
        assert builder.format_date(1_772_323_200) == "Sun, 01 Mar 2026 00:00:00 +0000"
    locale.setlocale(locale.LC_TIME, before)


@pytest.mark.parametrize("message_id", ["", "a", "<a@b>", "a@b>\r\nBcc: x@y", "a b@c", "a@", "@b", "é@b", "a@b\n"])
def test_a_malformed_message_id_is_refused(message_id: str) -> None:
    with pytest.raises(builder.MimeError, match="message_id"):
        builder.build(stdlib_parser.message(message_id=message_id))


def test_an_internationalised_sender_is_written_in_a_labels() -> None:
    parsed = stdlib_parser.build(from_=address.parse("Bücher <buch@bücher.example>"))
    assert parsed["From"].addresses[0].addr_spec == "buch@xn--bcher-kva.example"
    assert parsed["From"].addresses[0].display_name == "Bücher"


def test_a_local_part_in_another_script_is_written_in_utf_8_and_said_to_need_smtputf8() -> None:
    message = stdlib_parser.message(to=[address.parse("Jörg <jörg@bücher.example>"), stdlib_parser.RECIPIENT])
    assert message.needs_smtputf8
    assert not stdlib_parser.message().needs_smtputf8
    assert "<jörg@xn--bcher-kva.example>,".encode() in builder.build(message)
    parsed = stdlib_parser.parse(builder.build(message))
    assert [one.username for one in parsed["To"].addresses] == ["jörg", "user"]


def test_a_reply_address_in_another_script_needs_smtputf8_too() -> None:
    assert stdlib_parser.message(reply_to=[address.parse("jörg@example.com")]).needs_smtputf8


# No string that a caller gives can add a header, a part or a command.


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
    return address.make_mailbox(**({"display_name": None, "local": "a", "domain": "b.example", "written": ""} | parts))  # type: ignore[arg-type]


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
