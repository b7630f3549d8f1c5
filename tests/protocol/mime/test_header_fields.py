"""Header fields as lines: the standard library reads back what was given, and the lines have their widths."""

import binascii
import email
import email.header
import email.utils
import re
import sys
from collections.abc import Callable

import hypothesis
import jsonschema_rs
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import address, builder, header_fields
from tests.protocol import stdlib_parser

# Words of all kinds; the reference parser reads white space other than a space, and signs of Unicode's, as they are.
WORDS = st.text("abcXYZ019.,:;<>()[]@\"'\\=?_-/%&éüß漢字😀\u00a0\u200d", min_size=1, max_size=30)
VALUES = st.lists(WORDS | st.text("abc", min_size=60, max_size=120), max_size=12).map(" ".join)
CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\u2028\u2029")


def is_allowed(text: str) -> bool:
    try:
        header_fields.check_value(text)
    except header_fields.HeaderError:
        return False
    return True


def decoded(name: str) -> str:
    return str(email.header.make_header(email.header.decode_header(name)))


def lines(field: str) -> list[str]:
    assert field.endswith("\r\n")
    return field.removesuffix("\r\n").split("\r\n")


@hypothesis.given((VALUES | st.text(CHARACTERS, max_size=200)).filter(is_allowed))
def test_a_subject_comes_back(subject: str) -> None:
    assert stdlib_parser.build(subject=subject)["Subject"] == subject.strip(" \t")


@hypothesis.given((VALUES | st.text(CHARACTERS, max_size=200)).filter(is_allowed), st.integers(1, 76))
def test_the_value_of_a_custom_header_comes_back_whatever_the_length_of_its_name(value: str, size: int) -> None:
    name = ("X-" + "y" * 76)[:size]
    assert stdlib_parser.build(headers=[(name, value)])[name] == value.strip(" \t")


@hypothesis.given(st.lists(st.text("abc", min_size=1, max_size=70), min_size=1, max_size=30), st.data())
def test_white_space_between_ascii_words_is_kept_exactly(words: list[str], data: st.DataObject) -> None:
    spaces = st.text(" \t", min_size=1, max_size=4)
    value = words[0] + "".join(data.draw(spaces) + word for word in words[1:])
    field = header_fields.unstructured("X-A", value)
    assert field.replace("\r\n", "") == f"X-A: {value}"
    assert all(len(line) <= 78 for line in lines(field))
    assert all(line.strip() for line in lines(field))


@hypothesis.given(VALUES.filter(is_allowed))
def test_lines_are_short_wherever_there_is_a_space(value: str) -> None:
    field = header_fields.unstructured("X-A", value)
    for line in lines(field):
        if len(line) > (76 if "=?utf-8?" in line else 78):
            assert re.fullmatch(r"(X-A:)? \S+", line), "a line that could have been folded"


def test_ascii_words_are_never_encoded() -> None:
    url = "https://example.com/" + "x" * 300
    field = header_fields.unstructured("X-A", f"Grüße von {url} und tschüß")
    assert f" {url}" in field
    assert " von" in field
    assert field.count("=?utf-8?") == 2


def test_a_word_that_looks_like_the_start_of_an_encoded_word_is_encoded() -> None:
    assert "=?utf-8?" in header_fields.unstructured("Subject", "a =?b c")
    assert stdlib_parser.build(subject="a =?b c ?= =? d")["Subject"] == "a =?b c ?= =? d"


def test_a_word_of_998_octets_fits_beside_no_name_but_on_a_line_of_its_own() -> None:
    assert lines(header_fields.unstructured("X-A", "x" * 993)) == ["X-A: " + "x" * 993]
    assert lines(header_fields.unstructured("X-A", "x" * 997)) == ["X-A:", " " + "x" * 997]
    assert lines(header_fields.unstructured("X-A", "y " + "x" * 997)) == ["X-A: y", " " + "x" * 997]
    with pytest.raises(header_fields.HeaderError, match="998 octets"):
        header_fields.unstructured("X-A", "x" * 998)
    with pytest.raises(header_fields.HeaderError, match="998 octets"):
        header_fields.unstructured("X-A", "x" + " " * 998 + "x")


def test_a_long_text_without_spaces_is_folded_when_it_is_not_ascii() -> None:
    field = header_fields.unstructured("Subject", "漢" * 500)
    assert all(len(line) <= 76 for line in lines(field))
    assert stdlib_parser.build(subject="漢" * 500)["Subject"] == "漢" * 500


def mailboxes() -> st.SearchStrategy[address.Mailbox]:
    names = st.text(CHARACTERS, min_size=1, max_size=120).map(str.strip)
    fitting = names.filter(
        lambda name: name and "=?" not in name and not re.search("[\u202a-\u202e\u2066-\u2069]", name)
    )
    locals_ = st.from_regex(r"[a-z0-9+_]{1,20}(\.[a-z0-9]{1,10})?", fullmatch=True)
    return st.builds(
        address.make_mailbox,
        display_name=st.none() | fitting | st.text("abc \"'\\,.<>@()", min_size=1).map(str.strip).filter(bool),
        local=locals_,
        domain=st.sampled_from(["example.com", "xn--bcher-kva.example", "a-very-long-name." * 6 + "example"]),
        written=st.just(""),
    )


@hypothesis.given(st.lists(mailboxes(), min_size=1, max_size=8))
def test_a_list_of_addresses_comes_back(given: list[address.Mailbox]) -> None:
    raw = builder.build(stdlib_parser.message(to=given))
    assert [one.addr_spec for one in stdlib_parser.parse(raw)["To"].addresses] == [mailbox.address for mailbox in given]
    # Some versions of the newer parser put a space between two encoded words of a name; the older functions do not.
    written = email.message_from_bytes(raw)["To"].replace("\r\n", "")
    names = [decoded(name) for name, _ in email.utils.getaddresses([written])]
    assert names == [mailbox.display_name or "" for mailbox in given]


def test_fifty_addresses_are_folded_between_addresses() -> None:
    given = [address.parse(f"Person {number} <person{number}@example.com>") for number in range(50)]
    field = header_fields.addresses("To", given)
    assert all(len(line) <= 78 for line in lines(field))
    assert all(line.endswith(",") for line in lines(field)[:-1])
    assert all(line.lstrip().removeprefix("To: ").startswith('"Person') for line in lines(field))


def test_a_name_is_quoted_and_its_quotes_escaped() -> None:
    mailbox = address.parse(r'"a \"b\" \\ c, d" <x@example.com>')
    assert header_fields.addresses("To", [mailbox]) == 'To: "a \\"b\\" \\\\ c, d" <x@example.com>\r\n'


def test_a_long_quoted_name_is_folded_at_its_spaces() -> None:
    name = "word " * 50 + "end"
    field = header_fields.addresses("To", [address.parse(f"{name} <x@example.com>")])
    assert all(len(line) <= 78 for line in lines(field))
    assert field.replace("\r\n", "") == f'To: "{name}" <x@example.com>'


@hypothesis.given(
    st.lists(st.text("abc", min_size=1, max_size=100), min_size=1, max_size=20),
    st.lists(st.text(" \t", min_size=1, max_size=90), min_size=20, max_size=20),
)
def test_ascii_words_are_folded_the_same_the_short_way_and_the_long_way(words: list[str], spaces: list[str]) -> None:
    value = "".join(space + word for space, word in zip(spaces, words, strict=False)).strip(" \t")
    pieces = [header_fields.Piece(space or " ", word) for space, word in header_fields._SPACES_AND_WORD.findall(value)]
    assert header_fields._fold_ascii("X-A", value) == header_fields.fold("X-A", pieces)


@pytest.mark.parametrize(
    "value, field",
    [
        ("Grüße", "X: =?utf-8?b?R3LDvMOfZQ==?=\r\n"),
        ("Re: Grüße an  alle", "X: Re: =?utf-8?b?R3LDvMOfZQ==?= an  alle\r\n"),
        ("für  dich ü", "X: =?utf-8?q?f=C3=BCr?=  dich =?utf-8?b?w7w=?=\r\n"),
        ("ü\tü x", "X: =?utf-8?b?w7wJw7w=?= x\r\n"),
        ("=?utf-8?q?a?= ü", "X: =?utf-8?q?a?= =?utf-8?b?IMO8?=\r\n"),
        ("ü =?utf-8?q?a?=", "X: =?utf-8?b?w7wg?= =?utf-8?q?a?=\r\n"),
        ("?= ü =?", "X: ?= =?utf-8?b?w7w=?= =?\r\n"),
        ("=?utf-8?q?=0D=0ABcc:?= ü", "X: =?utf-8?q?=0D=0ABcc:?= =?utf-8?b?IMO8?=\r\n"),
        ("ü\u2028\u0085x", "X: =?utf-8?b?w7zigKjChXg=?=\r\n"),
    ],
)
def test_what_others_wrote_in_utf_8_is_encoded_and_their_own_encoded_words_stay(value: str, field: str) -> None:
    assert header_fields.reencoded("X", value) == field
    before, after = (
        header_fields.decode_words(value),
        header_fields.decode_words(field.removeprefix("X: ").removesuffix("\r\n")),
    )
    assert before == after


# An expression that looked from each quote for its end would take hours for these.
@pytest.mark.parametrize("pattern", ['\\"', '"\\"', "<", '"', '"@', "\\", "=", "<\\", '=\\"'])
@pytest.mark.parametrize("encode", [header_fields.structured, header_fields.parameters])
def test_hostile_structured_fields_are_read_in_one_pass(encode: Callable[[str, str], str], pattern: str) -> None:
    with pytest.raises(header_fields.HeaderError, match="a line may have 998 octets"):
        encode("X", "ü@" + pattern * 200_000)


@hypothesis.given(VALUES)
def test_a_reader_sees_the_same_before_and_after_encoding(value: str) -> None:
    value = value.strip(" ")
    field = header_fields.reencoded("X", value)
    assert field.isascii()
    assert header_fields.decode_words(
        "".join(lines(field)).removeprefix("X:").strip(" ")
    ) == header_fields.decode_words(value)


# An expression that tried each blank as a beginning would take hours for these.
@pytest.mark.parametrize("write", [header_fields.reencoded, header_fields.structured, header_fields.parameters])
def test_much_white_space_behind_a_word_costs_one_look(write: Callable[[str, str], str]) -> None:
    blanks = " " * 1_000_000
    assert write("X-Test", f"a{blanks}") == "X-Test: a\r\n"
    assert write("X-Test", f"ü{blanks}").startswith("X-Test: ")


def test_a_long_name_that_is_not_ascii_becomes_several_words_with_only_space_between_them() -> None:
    field = header_fields.structured("From", "é" * 60 + " x <a@example.com>")
    words = field.removeprefix("From: ").split()
    assert words[-2:] == ["x", "<a@example.com>"]
    assert len(words) > 3
    assert all(word.startswith("=?utf-8?b?") and word.endswith("?=") for word in words[:-2])
    assert header_fields.decode_words(" ".join(words[:-2])) == "é" * 60


# What may stand in a header.


STDLIB_VALUE = jsonschema_rs.validator_for({"pattern": header_fields.VALUE_PATTERN})
STDLIB_NAME = jsonschema_rs.validator_for({"pattern": header_fields.NAME_PATTERN})


@pytest.mark.parametrize(
    "text", ["", "Hello", "a\tb", "Größe 😀", "a =? b ?= c", "50 % = ?", "=?x?=", "א\u200fב", "a\u00a0b"]
)
def test_ordinary_text_passes(text: str) -> None:
    header_fields.check_value(text)


@pytest.mark.parametrize("text", ["=?utf-8?q?x?=", "a =?utf-8?B?eA==?= b", "=?x?q?", "=??b?", "=?a b?Q?", "x=?u?q?y"])
def test_what_begins_an_encoded_word_is_refused(text: str) -> None:
    with pytest.raises(header_fields.HeaderError, match="encoded words"):
        header_fields.check_value(text)


def test_every_character_that_splits_a_line_somewhere_is_refused_as_a_line_break() -> None:
    splitting = [chr(code) for code in range(sys.maxunicode + 1) if len(f"a{chr(code)}b".splitlines()) > 1]
    assert len(splitting) == 10
    for character in splitting:
        with pytest.raises(header_fields.HeaderError, match="line breaks are not allowed here"):
            header_fields.check_value(f"a{character}b")


@pytest.mark.parametrize("code", [0, 0x01, 0x08, 0x1B, 0x1F, 0x7F, 0x80, 0x9F, 0xD800, 0xDFFF])
def test_other_control_characters_are_refused(code: int) -> None:
    with pytest.raises(header_fields.HeaderError, match=f"control characters.*U\\+{code:04X}"):
        header_fields.check_value(f"a{chr(code)}b")


@pytest.mark.parametrize("character", ["\t", "\u202a", "\u202e", "\u2066", "\u2069"])
def test_a_display_name_or_a_file_name_is_checked_more_strictly(character: str) -> None:
    header_fields.check_value(f"a{character}b")
    with pytest.raises(header_fields.HeaderError):
        header_fields.check_label(f"a{character}b")


@pytest.mark.parametrize("name", ["X-A", "List-Unsubscribe", "a", "X_1.2", "X" * 76])
def test_a_header_name_is_a_token(name: str) -> None:
    header_fields.check_name(name)


@pytest.mark.parametrize("name", ["", "X A", "X:", "X\r\n", "X\n", "é", "X" * 77, "X\0", '"X"', "X(y)", "X/Y"])
def test_what_is_no_token_is_no_header_name(name: str) -> None:
    with pytest.raises(header_fields.HeaderError):
        header_fields.check_name(name)


@hypothesis.given(st.text() | st.text("a =?qB\r\n\t\0\u2028"))
def test_the_value_pattern_says_the_same_as_the_check(text: str) -> None:
    hypothesis.assume(not re.search("[\ud800-\udfff]", text))
    try:
        header_fields.check_value(text)
        accepted = True
    except header_fields.HeaderError:
        accepted = False
    assert STDLIB_VALUE.is_valid(text) == accepted
    assert (re.search(header_fields.VALUE_PATTERN[:-1] + r"\Z", text) is not None) == accepted


@hypothesis.given(st.text("aZ09-_.: \n()é!#$%&'*+^`|~/", max_size=80))
def test_the_name_pattern_says_the_same_as_the_check(name: str) -> None:
    try:
        header_fields.check_name(name)
        accepted = True
    except header_fields.HeaderError:
        accepted = False
    assert STDLIB_NAME.is_valid(name) == accepted


# Encoded words.


WORD = re.compile(r"=\?utf-8\?(?:q\?[A-Za-z0-9!*+/=_-]+|b\?[A-Za-z0-9+/]+={0,2})\?=")
CHARSETS = [
    *("us-ascii", "utf-8", "utf8", *(f"iso-8859-{part}" for part in range(1, 17) if part != 12)),
    *(f"windows-{page}" for page in range(1250, 1259)),
    *("koi8-r", "koi8-u", "tis-620", "gb2312", "gbk", "gb18030", "big5", "shift_jis", "euc-jp", "iso-2022-jp"),
    *("euc-kr", "ks_c_5601-1987", "iso-2022-kr"),
]
ROOMS = st.integers(24, 200)


def decode(words: list[str]) -> str:
    ((octets, charset),) = email.header.decode_header(" ".join(words))
    assert charset == "utf-8"
    assert isinstance(octets, bytes)
    return octets.decode()


@pytest.mark.parametrize(
    "text, words",
    [
        ("für", ["=?utf-8?q?f=C3=BCr?="]),
        ("Viele Grüße aus Bonn", ["=?utf-8?q?Viele_Gr=C3=BC=C3=9Fe_aus_Bonn?="]),
        ("Grüße aus Köln", ["=?utf-8?b?R3LDvMOfZSBhdXMgS8O2bG4=?="]),
        ("日本", ["=?utf-8?b?5pel5pys?="]),
        ("a=?b", ["=?utf-8?q?a=3D=3Fb?="]),
        ("über_1 (x)", ["=?utf-8?b?w7xiZXJfMSAoeCk=?="]),
    ],
)
def test_the_shorter_encoding_is_taken(text: str, words: list[str]) -> None:
    assert header_fields.encode_words(text, room=75) == words


@hypothesis.given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=300), ROOMS)
def test_any_text_comes_back_and_every_word_is_well_formed(text: str, room: int) -> None:
    words = header_fields.encode_words(text, room=room)
    assert decode(words) == text
    assert len(words[0]) <= room
    for word in words:
        assert len(word) <= 75
        assert WORD.fullmatch(word)
        decode([word])  # raises when a character is cut in two


def test_a_word_is_filled_before_the_next_begins() -> None:
    words = header_fields.encode_words("é" + "a" * 57 + "b" * 64, room=75)
    assert [len(word) for word in words] == [75, 75, 13]


@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"])
def test_the_smallest_room_is_enough_for_any_character(character: str) -> None:
    words = header_fields.encode_words(character * 100 + "=" * 30, room=24)
    assert len(words[0]) <= 24
    assert decode(words) == character * 100 + "=" * 30


def test_words_are_filled_before_the_next_one_begins() -> None:
    words = header_fields.encode_words("ü" * 200, room=75)
    assert all(len(word) > 75 - 6 for word in words[:-1])


@hypothesis.given(st.text(st.characters(codec="utf-8"), max_size=300), ROOMS)
def test_what_was_encoded_is_decoded(text: str, room: int) -> None:
    assert header_fields.decode_words(" ".join(header_fields.encode_words(text, room=room))) == text


@pytest.mark.parametrize(
    "text, decoded",
    [
        ("", ""),
        ("plain = ? text", "plain = ? text"),
        ("=?utf-8?q?f=C3=BCr_dich?=", "für dich"),
        ("=?UTF-8?Q?f=c3=bcr?=", "für"),
        ("Re: =?utf-8?b?QsO8cm8=?= in  Bonn", "Re: Büro in  Bonn"),
        ("=?iso-8859-1?q?f=FCr?= =?utf-8?q?_dich?=", "für dich"),
        ("=?windows-1252?q?=80?=", "€"),
        ("=?iso-2022-jp?b?GyRCRnxLXBsoQg==?=", "日本"),
        ("=?gb2312?b?xOO6ww==?=", "你好"),
        ("=?utf-8*de?q?f=C3=BCr?=", "für"),
        ("=?utf-8?q?a?=  \t =?utf-8?q?b?=", "ab"),
        ("=?utf-8?q?a?= x =?utf-8?q?b?=", "a x b"),
        ("=?utf-8?q?a?==?utf-8?q?b?=", "ab"),
        ("(=?utf-8?q?a?=)", "(a)"),
        ("=?utf-8?b?w7w?=", "ü"),
        ("=?utf-8?b?w7w=w7w=?=", "ü"),
        ("=?utf-8?b?ww==?= =?utf-8?b?vA==?=", "ü"),
        ("=?utf-8?q?two words?=", "two words"),
        ("=?utf-8?q??=", ""),
        ("=?utf-8?q?=FF?=", "\ufffd"),
        ("=?utf-8?q?100=?=", "100"),
        ("=?utf-8?q?=0D=0ABcc:_x?=", "\r\nBcc: x"),
    ],
)
def test_the_words_of_others_are_read(text: str, decoded: str) -> None:
    assert header_fields.decode_words(text) == decoded


@pytest.mark.parametrize(
    "text",
    [
        "=?utf-8?b?w?=",
        "=?x-unknown?q?a?=",
        "=?zlib?b?eJwDAAAAAAE=?=",
        "=?unicode_escape?q?=5Cx41?=",
        "=?idna?q?xn--a?=",
        "=?utf-8?x?a?=",
        "=?utf-8?q?a",
        "=?utf-8?q?ü?=",
        "=??q?a?=",
    ],
)
def test_what_cannot_be_read_stays_as_it_is(text: str) -> None:
    assert header_fields.decode_words(text) == text
    assert header_fields.decode_words(f"{text} =?utf-8?q?b?=") == f"{text} b"


@pytest.mark.parametrize("charset", CHARSETS)
@hypothesis.given(octets=st.binary(min_size=1, max_size=30))
def test_every_character_set_is_known_and_gives_text_that_can_be_stored(charset: str, octets: bytes) -> None:
    text = binascii.b2a_base64(octets, newline=False).decode()
    assert header_fields.decode_words(f"=?{charset}?b?{text}?=") == octets.decode(charset, "replace")
    octets.decode(charset, "replace").encode()


@hypothesis.given(st.text("=?utf-8qb_ \tAé\r\n", max_size=80) | st.text(max_size=80))
def test_no_text_fails_or_grows(text: str) -> None:
    assert len(header_fields.decode_words(text)) <= len(text)


@pytest.mark.parametrize(
    "pattern", ["=?", "=?a?", "=?utf-8?q?", "=?utf-8?q?a?= ", "=?utf-8?q?a?=x", "?", "=?utf-8?b?w?="]
)
def test_a_long_hostile_text_is_read_like_a_short_one(pattern: str) -> None:
    once, count = header_fields.decode_words(pattern), 256 * 1024 // len(pattern)
    decoded = header_fields.decode_words(pattern * count)
    assert len(decoded) in {len(once) * count, len("a") * count + len(" ")}
