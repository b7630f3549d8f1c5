"""Header fields as lines: encoded where they must be, folded where they may be (RFC 5322 section 2.2.3).

Lines are at most 78 characters where white space allows it (76 once a field is folded) and never more than 998
octets: a value that cannot be folded below that is refused. A fold keeps the white space that was there, so unfolding
gives the value back unchanged. ASCII words are never encoded: a long URL stays one word on one line. Lists of
addresses are folded between addresses. Every field comes out with its CRLF, and holds no other line end.
"""

import binascii
import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from postroad.protocol.mime import address, transfer_encoding

# Encoded words: non-ASCII text in a header (RFC 2047).
#
# A text becomes one or more words of at most 75 characters (section 2), each of whole characters (section 5), all in
# the shorter one of the Q and B encodings. Q leaves only those characters alone that section 5 (3) allows inside a
# phrase, so that one encoding serves subjects and display names alike.
#
# Decoding is for input from outside: it never fails, and leaves alone what it cannot decode. Its result may contain
# line breaks and other control characters: it is for display and for the store, never for a header.

MAX_WORD_CHARACTERS: Final = 75
# `=?utf-8?q?` and `?=`, around the twelve characters that Q may need for a single character.
MIN_WORD_ROOM: Final = 12 + 12
_SHELL: Final = 12
_PLAIN_IN_PHRASE: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*+-/")
_Q: Final = tuple(
    chr(octet) if octet in _PLAIN_IN_PHRASE else "_" if octet == ord(" ") else f"={octet:02X}" for octet in range(256)
)
# What mail is written in. Python knows more codecs, but some of them are slow, or are not character sets.
CHARSETS: Final = frozenset(
    "us-ascii utf-8 utf8 iso-8859-1 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 "
    "iso-8859-9 iso-8859-10 iso-8859-11 iso-8859-13 iso-8859-14 iso-8859-15 iso-8859-16 windows-1250 windows-1251 "
    "windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258 koi8-r koi8-u tis-620 "
    "gb2312 gbk gb18030 big5 shift_jis euc-jp iso-2022-jp euc-kr ks_c_5601-1987 iso-2022-kr".split()
)
# With the language of RFC 2231 section 5, and with the spaces in the text that some writers leave there.
_WORD: Final = re.compile(r"=\?([A-Za-z0-9_-]{1,40})(?:\*[A-Za-z0-9-]{0,40})?\?([BbQq])\?([ !->@-~]*)\?=")


def decode_words(text: str) -> str:
    """The text with its encoded words read; those of unknown character sets and malformed ones are kept."""
    if "=?" not in text:
        return text
    done: list[str] = []
    # Words of one character set that follow each other are read together: some writers cut characters in two.
    run: list[bytes] = []
    run_charset, end = "utf-8", 0
    for word in _WORD.finditer(text):
        charset = word[1].lower()
        octets = _octets(word[2], word[3]) if charset in CHARSETS else None
        if octets is None:
            continue
        gap = text[end : word.start()]
        # White space between two encoded words is not part of the text (section 6.2).
        follows = end > 0 and not gap.strip(" \t")
        if not (follows and charset == run_charset):
            done.append(b"".join(run).decode(run_charset, "replace"))
            run, run_charset = [], charset
        if not follows:
            done.append(gap)
        run.append(octets)
        end = word.end()
    return "".join([*done, b"".join(run).decode(run_charset, "replace"), text[end:]])


def _octets(encoding: str, text: str) -> bytes | None:
    """The decoded text of an encoded word; None when it is malformed."""
    if encoding in "Qq":
        return binascii.a2b_qp(text, header=True)
    try:
        # Some writers leave out the padding.
        return binascii.a2b_base64(transfer_encoding.base64_up_to_padding(text.encode("ascii", "replace")) + b"==")
    except binascii.Error:
        return None


def encode_words(text: str, *, room: int) -> list[str]:
    """The text as encoded words; the first is at most `room` characters long, which is at least `MIN_ROOM`."""
    octets = text.encode()
    quoted_length = len(_quote(octets))
    base64_length = _base64_length(len(octets))
    base64 = base64_length < quoted_length
    fits = min(base64_length, quoted_length) + _SHELL <= min(room, MAX_WORD_CHARACTERS)
    chunks = [octets] if fits else _split(text, room=room, base64=base64)
    return [_word(chunk, base64=base64) for chunk in chunks]


def _word(octets: bytes, *, base64: bool) -> str:
    if base64:
        return f"=?utf-8?b?{binascii.b2a_base64(octets, newline=False).decode('ascii')}?="
    return f"=?utf-8?q?{_quote(octets)}?="


def _quote(octets: bytes) -> str:
    return "".join([_Q[octet] for octet in octets])


def _base64_length(octets: int) -> int:
    return (octets + 2) // 3 * 4


def _split(text: str, *, room: int, base64: bool) -> list[bytes]:
    """The text in chunks of whole characters that fit, encoded, into the room of their words."""
    chunks: list[bytes] = []
    chunk = b""
    length = 0
    available = min(room, MAX_WORD_CHARACTERS) - _SHELL
    for character in text:
        octets = character.encode()
        longer = _base64_length(len(chunk) + len(octets)) if base64 else length + len(_quote(octets))
        if longer > available:
            chunks.append(chunk)
            chunk, longer = b"", _base64_length(len(octets)) if base64 else len(_quote(octets))
            available = MAX_WORD_CHARACTERS - _SHELL
        chunk += octets
        length = longer
    chunks.append(chunk)
    return chunks


# Which strings may appear in a header.
#
# Every string that reaches a header is checked here. Line breaks would start a header of the caller's choice; other
# control characters and Unicode line separators are treated as line breaks by some readers (`str.splitlines` is one);
# an encoded word in the input (RFC 2047) would be decoded by the recipient into unchecked text. All of them are
# refused, not repaired. Field names are tokens, narrower than RFC 5322 section 3.6.8 allows. The two patterns say the
# same for JSON Schema.

MAX_NAME_CHARACTERS: Final = 76  # with the colon and a space, a name fits on a line of 78
_CONTROLS: Final = r"\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029"  # all but the tab
_ENCODED_WORD_START: Final = r"=\?[^?]*\?[bBqQ]\?"
NAME_PATTERN: Final = rf"^[A-Za-z0-9!#$%&'*+.^_`|~\-]{{1,{MAX_NAME_CHARACTERS}}}$"
VALUE_PATTERN: Final = rf"^(?![\s\S]*{_ENCODED_WORD_START})[^{_CONTROLS}]*$"

_NAME: Final = re.compile(NAME_PATTERN.strip("^$"))
_FORBIDDEN: Final = re.compile(rf"[{_CONTROLS}\ud800-\udfff]")
_BEGINS_ENCODED_WORD: Final = re.compile(_ENCODED_WORD_START)
_TURNS_DIRECTION: Final = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_LINE_BREAKS: Final = frozenset("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")


class HeaderError(ValueError):
    """A string may not stand in a header. The message says why and is safe to show; the caller names the field."""


def check_value(text: str) -> None:
    """Refuse text that may not stand in the value of a header."""
    if text.isascii() and text.isprintable() and "=?" not in text:
        return
    forbidden = _FORBIDDEN.search(text)
    if forbidden is not None:
        kind = "line breaks" if forbidden[0] in _LINE_BREAKS else "control characters"
        raise HeaderError(f"{kind} are not allowed here (found U+{ord(forbidden[0]):04X})")
    if _BEGINS_ENCODED_WORD.search(text) is not None:
        raise HeaderError("encoded words ('=?…?=') are not allowed here; write the characters themselves")


def check_label(text: str) -> None:
    """Refuse text that may not be the name of a person or a file: there, tabs and turned directions deceive."""
    check_value(text)
    if "\t" in text:
        raise HeaderError("control characters are not allowed here (found U+0009)")
    turned = None if text.isascii() else _TURNS_DIRECTION.search(text)
    if turned is not None:
        raise HeaderError(f"bidirectional control characters are not allowed here (found U+{ord(turned[0]):04X})")


def check_name(name: str) -> None:
    """Refuse a string that is not the name of a header."""
    if _NAME.fullmatch(name) is None:
        raise HeaderError(
            f"a header name is 1 to {MAX_NAME_CHARACTERS} letters, digits and hyphens, without spaces or a colon"
        )


LINE_CHARACTERS: Final = 78  # RFC 5322 section 2.1.1
MAX_LINE_OCTETS: Final = 998  # the same section
FOLDED_LINE_CHARACTERS: Final = 76  # RFC 2047 section 2, for lines with encoded words; one width does for all
# No match begins in the middle of white space, so that much of it at the end of a text costs one look.
_SPACES_AND_WORD: Final = re.compile(r"(?<![ \t])([ \t]*+)([^ \t]+)")
# As `fold` makes them: as many words as there is room for, or one that is longer.
_FOLDED_LINE: Final = re.compile(rf".{{0,{FOLDED_LINE_CHARACTERS - 1}}}[^ \t](?![^ \t])|[ \t]*[^ \t]+")
_ADDRESS: Final = re.compile(r'[^ "(),:;<>@\[\\\]]+@[^ "(),:;<>@\[\\\]]+')
_QUOTABLE: Final = re.compile(r'(["\\])')
# What stands between the marks of a structured field. Addresses and URLs between angle brackets are for programs. That
# escaped characters are read outside of quotes too keeps it one pass: behind a quote that is never closed none follows.
_PART: Final = re.compile(
    r"""\\[ -~] | <[^<>]*+> | "(?:[^"\\]|\\.)*+"@ | "(?P<quoted>(?:[^"\\]|\\.)*+)" | (?P<words>[^"(),:;<>\[\]\\]++)""",
    re.VERBOSE | re.DOTALL,
)
_BARE_PARAMETER: Final = re.compile(r'(?<!\*)=([^\s";]++)')
_ENCODED_WORD: Final = "=?utf-8?q?a?="
# Leaves a place for the field's name, or that of a parameter, before the first encoded word on a line.
_STRUCTURED_ROOM: Final = 40
# A sender is written in the same way in each of its messages. Some kilobytes an entry at the most.
_CACHE_SIZE: Final = 1024


class Piece(NamedTuple):
    """A word with the white space before it, before which a line may end. `encode`: it is text for encoded words."""

    space: str
    word: str
    encode: bool = False


def unstructured(name: str, value: str) -> str:
    """A field of free text, such as a subject. White space around the value is dropped; all other is kept."""
    check_value(value)
    value = value.strip(" \t")
    if value.isascii() and "=?" not in value:
        line = f"{name}: {value}"
        if len(line) <= LINE_CHARACTERS:
            return line + "\r\n"
        return _fold_ascii(name, value)
    return fold(name, _pieces(value))


def reencoded(name: str, value: str) -> str:
    """A field of free text from outside in UTF-8, with the non-ASCII words encoded.

    What is ASCII stays as it is, encoded words too: nothing is decoded, so no hidden text can appear.
    """
    return fold(name, _reencoded_pieces(value))


def structured(name: str, value: str) -> str:
    """The same for a field with a syntax: its marks stay, and the words and quoted texts between them are encoded.

    An address or a URL that is not ASCII has no such form; it stays, and with it the field is not ASCII.
    """

    def encoded(part: re.Match[str]) -> str:
        if part.lastgroup is None or part[0].isascii():
            return part[0]
        if part.lastgroup == "quoted":
            return _encoded_quotes(part)
        if any("@" in word and not word.isascii() for word in part["words"].split()):
            return part[0]
        # RFC 2047 section 5 (3): white space stands between an encoded word and any mark.
        return _encoded_words(part["words"]) + (" " if part.end() < len(value) else "")

    return _folded(name, _PART.sub(encoded, value))


def parameters(name: str, value: str) -> str:
    """The same for a field of MIME with parameters: their values become encoded words in quotes.

    RFC 2047 section 5 (3) forbids these, and RFC 2231 has a form of its own. But most programs write this one, nearly
    all read it, and which of the two a reader supports is unknown.
    """
    quoted = _BARE_PARAMETER.sub(lambda bare: bare[0] if bare[0].isascii() else f'="{bare[1]}"', value)
    return _folded(
        name, _PART.sub(lambda part: _encoded_quotes(part) if part.lastgroup == "quoted" else part[0], quoted)
    )


def addresses(name: str, mailboxes: Sequence[address.Mailbox]) -> str:
    """A field of addresses, such as `To`; the names in quotes or encoded, the domains as A-labels."""
    if len(mailboxes) == 1:
        mailbox = mailboxes[0]
        if mailbox.display_name is not None:
            return _named_address(name, mailbox)
        line = f"{name}: {_address(mailbox)}"
        return line + "\r\n" if len(line) <= LINE_CHARACTERS else fold(name, mailbox_pieces(mailbox, end=""))
    pieces: list[Piece] = []
    last = len(mailboxes) - 1
    for index, mailbox in enumerate(mailboxes):
        pieces += mailbox_pieces(mailbox, end="" if index == last else ",")
    return fold(name, pieces)


def mailbox_pieces(mailbox: address.Mailbox, *, end: str) -> list[Piece]:
    """One piece where that fits on a line, so that a name and its address stay together."""
    name = mailbox.display_name
    if name is None:
        return [Piece(" ", _address(mailbox) + end)]
    check_label(name)
    bracketed = f"<{_address(mailbox)}>{end}"
    if not name.isascii() or "=?" in name:
        return [Piece(" ", name, encode=True), Piece(" ", bracketed)]
    together = f"{quote(name)} {bracketed}"
    if len(together) < FOLDED_LINE_CHARACTERS:
        return [Piece(" ", together)]
    return [Piece(space or " ", word) for space, word in _SPACES_AND_WORD.findall(together)]


def fold(name: str, pieces: Iterable[Piece]) -> str:
    """The field made of the pieces, on as few lines as the widths allow."""
    lines: list[str] = []
    line = f"{name}:"
    # The first line never ends after the name, or some readers would treat the fold as part of the value.
    endless = True
    for space, word, encode in pieces:
        if encode:
            full, line = _append_encoded(line, space, word, endless=endless)
            lines += full
        else:
            length = len(line) + len(space) + len(word)
            if length > (MAX_LINE_OCTETS if endless else FOLDED_LINE_CHARACTERS):
                lines.append(line)
                line = ""
            line += space + word
        endless = False
    lines.append(line)
    _refuse_long_lines(lines)
    return "\r\n".join(lines) + "\r\n"


def quote(text: str) -> str:
    """The ASCII text as a quoted string (RFC 5322 section 3.2.4)."""
    if '"' in text or "\\" in text:
        text = _QUOTABLE.sub(r"\\\1", text)
    return f'"{text}"'


def _fold_ascii(name: str, value: str) -> str:
    """What `fold` makes of words that need no encoding, in one expression: every message has some such fields."""
    # A NUL stands in for the space after the name, so that no line ends there unless it must.
    lines: list[str] = _FOLDED_LINE.findall(f"{name}:\0{value}")
    space = " " if len(lines[0]) <= MAX_LINE_OCTETS else "\r\n "
    lines[:1] = lines[0].replace("\0", space).split("\r\n")
    _refuse_long_lines(lines)
    return "\r\n".join(lines) + "\r\n"


def _append_encoded(line: str, space: str, text: str, *, endless: bool) -> tuple[list[str], str]:
    """Append the text to the line as encoded words: the lines that are full, and the last one."""
    full: list[str] = []
    room = FOLDED_LINE_CHARACTERS - len(line) - len(space)
    if room < MIN_WORD_ROOM and not endless:
        full.append(line)
        line = ""
        room = FOLDED_LINE_CHARACTERS - len(space)
    words = encode_words(text, room=max(room, MIN_WORD_ROOM))
    for word in words[:-1]:
        full.append(f"{line}{space}{word}")
        line, space = "", " "
    return full, f"{line}{space}{words[-1]}"


def _refuse_long_lines(lines: list[str]) -> None:
    for line in lines:
        octets = len(line) if line.isascii() else len(line.encode())
        if octets > MAX_LINE_OCTETS:
            raise HeaderError(f"a line may have {MAX_LINE_OCTETS} octets, and this one has no space to fold at")


def _pieces(value: str) -> list[Piece]:
    """The words of a value; neighbours that need encoding become one, with the white space between them.

    A reader drops the white space between two encoded words (RFC 2047 section 6.2), so it has to be inside.
    """
    pieces: list[Piece] = []
    for space, word in _SPACES_AND_WORD.findall(value):
        encode = not word.isascii() or "=?" in word
        if encode and pieces and pieces[-1].encode:
            before = pieces.pop()
            pieces.append(Piece(before.space, before.word + space + word, encode=True))
        else:
            pieces.append(Piece(space or " ", word, encode))
    return pieces


def _encoded_quotes(part: re.Match[str]) -> str:
    if part["quoted"].isascii():
        return part[0]
    text = address.QUOTED_PAIR.sub(r"\1", part["quoted"])
    return f'"{" ".join(encode_words(text, room=_STRUCTURED_ROOM))}"'


def _encoded_words(text: str) -> str:
    written: list[str] = []
    for space, word, encode in _reencoded_pieces(text):
        words = encode_words(word, room=_STRUCTURED_ROOM) if encode else [word]
        written += [space, " ".join(words)]
    return "".join(written)


def _folded(name: str, text: str) -> str:
    return fold(name, [Piece(space or " ", word) for space, word in _SPACES_AND_WORD.findall(text)])


def _reencoded_pieces(value: str) -> list[Piece]:
    pieces: list[Piece] = []
    words = _SPACES_AND_WORD.findall(value)
    for is_ascii, run in itertools.groupby(words, key=lambda found: found[1].isascii()):
        (space, word), *others = run
        # As in `_pieces`, white space between two encoded words has to be inside one of them.
        if not is_ascii:
            inside = space if pieces and _joins(pieces[-1].word, _ENCODED_WORD) else ""
            text = "".join([inside, word, *itertools.chain.from_iterable(others)])
            pieces.append(Piece(space or " ", text, encode=True))
            continue
        if pieces and _joins(_ENCODED_WORD, word):
            before = pieces.pop()
            pieces.append(Piece(before.space, before.word + space, encode=True))
        pieces += [Piece(space or " ", word), *itertools.starmap(Piece, others)]
    return pieces


def _joins(left: str, right: str) -> bool:
    """Whether a reader drops the white space between the words, because they are encoded words where they meet."""
    if not (left.endswith("?=") and right.startswith("=?")):
        return False
    return decode_words(f"{left} {right}") != f"{decode_words(left)} {decode_words(right)}"


@functools.lru_cache(maxsize=_CACHE_SIZE)
def _named_address(name: str, mailbox: address.Mailbox) -> str:
    return fold(name, mailbox_pieces(mailbox, end=""))


def _address(mailbox: address.Mailbox) -> str:
    """The address, checked once more: a mailbox that was not parsed must not reach a header."""
    text = mailbox.address
    if _ADDRESS.fullmatch(text) is None or not text.isprintable() or "=?" in text:
        raise HeaderError("an address may not contain spaces, quotes, brackets or control characters")
    return text
