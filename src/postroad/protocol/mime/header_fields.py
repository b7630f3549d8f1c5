"""Header fields as lines: encoded where they must be, folded where they may be (RFC 5322 section 2.2.3).

Lines are at most 78 characters where white space allows it (76 once a field is folded) and never more than 998
octets: a value that cannot be folded below that is refused. A fold keeps the white space that was there, so unfolding
gives the value back unchanged. ASCII words are never encoded: a long URL stays one word on one line. Lists of
addresses are folded between addresses. Every field comes out with its CRLF, and holds no other line end.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from postroad.protocol import address, address_syntax
from postroad.protocol.mime import encoded_words, header_text

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
    header_text.check_value(value)
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
        return _lone_address(name, mailboxes[0])
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
    header_text.check_label(name)
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
    if room < encoded_words.MIN_ROOM and not endless:
        full.append(line)
        line = ""
        room = FOLDED_LINE_CHARACTERS - len(space)
    words = encoded_words.encode(text, room=max(room, encoded_words.MIN_ROOM))
    for word in words[:-1]:
        full.append(f"{line}{space}{word}")
        line, space = "", " "
    return full, f"{line}{space}{words[-1]}"


def _refuse_long_lines(lines: list[str]) -> None:
    for line in lines:
        octets = len(line) if line.isascii() else len(line.encode())
        if octets > MAX_LINE_OCTETS:
            raise header_text.HeaderError(
                f"a line may have {MAX_LINE_OCTETS} octets, and this one has no space to fold at"
            )


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
    text = address_syntax.QUOTED_PAIR.sub(r"\1", part["quoted"])
    return f'"{" ".join(encoded_words.encode(text, room=_STRUCTURED_ROOM))}"'


def _encoded_words(text: str) -> str:
    written: list[str] = []
    for space, word, encode in _reencoded_pieces(text):
        words = encoded_words.encode(word, room=_STRUCTURED_ROOM) if encode else [word]
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
    return encoded_words.decode(f"{left} {right}") != f"{encoded_words.decode(left)} {encoded_words.decode(right)}"


def _lone_address(name: str, mailbox: address.Mailbox) -> str:
    if mailbox.display_name is not None:
        return _named_address(name, mailbox)
    line = f"{name}: {_address(mailbox)}"
    return line + "\r\n" if len(line) <= LINE_CHARACTERS else fold(name, mailbox_pieces(mailbox, end=""))


@functools.lru_cache(maxsize=_CACHE_SIZE)
def _named_address(name: str, mailbox: address.Mailbox) -> str:
    return fold(name, mailbox_pieces(mailbox, end=""))


def _address(mailbox: address.Mailbox) -> str:
    """The address, checked once more: a mailbox that was not parsed must not reach a header."""
    text = mailbox.address
    if _ADDRESS.fullmatch(text) is None or not text.isprintable() or "=?" in text:
        raise header_text.HeaderError("an address may not contain spaces, quotes, brackets or control characters")
    return text
