"""Lists of addresses in the header fields of real mail: `From`, `To`, `Cc` and similar fields.

Parsed are the forms of RFC 5322 section 3.4: names in words, quotes and encoded words (RFC 2047), comments, which are
dropped, and groups, which are flattened; also empty elements and semicolons between addresses, which clients write.
Every address goes through the strict parser of `address`, so that a header accepts nothing that the API refuses. A name
with special characters outside quotes is refused, even in an encoded word (RFC 2047 section 5 (3)): readers disagree on
which address they then see. One pass from left to right, without recursion.
"""

import re
from typing import Final

from postroad.protocol.mime import address, header_fields

# Twice as many as a message may be sent to. More would cost others their time: a domain in another script takes some
# fifty microseconds.
MAX_ADDRESSES: Final = 100
# Words, addresses and marks between them: five or so make a mailbox, ten or so one with a long name.
MAX_TOKENS: Final = 2_000

_TOKEN: Final = re.compile(
    r"""[ ]*+(?:
    "(?P<quoted>(?:[^"\\]|\\.)*+)"
    | <(?P<angle>[^<>]*+)>
    | (?P<separator>[,;])
    | (?P<group>:)
    | (?P<comment>\()
    | (?P<word>[^ "(),:;<>]++))""",
    re.VERBOSE | re.DOTALL,
)
_TEXT: Final = r'[^ \t"(),:;<>@\[\\\]]++'
_ADDRESS: Final = rf"{_TEXT}@{_TEXT}"
# The form of nearly all mail, which the strict parser reads as it is (but for encoded words).
_SIMPLE: Final = re.compile(rf'(?:{_TEXT}(?: {_TEXT})*+|"(?P<quoted>[^"\\]*+)") <(?P<angle>{_ADDRESS})>|{_ADDRESS}')
_PLAIN: Final = re.compile(
    rf"""(?:(?:{_TEXT}(?:[ \t]++{_TEXT})*+|"(?:[^"\\]|\\.)*+")?[ \t]*+<{_ADDRESS}>|{_ADDRESS})""", re.DOTALL
)
_QUOTED_ENCODED_WORD: Final = re.compile(r'".*=\?', re.DOTALL)
_IN_COMMENT: Final = re.compile(r"\\.|[()]", re.DOTALL)


def is_plain(text: str) -> bool:
    """Whether an unfolded value is one address, perhaps with a name, and all readers see the same one."""
    return _PLAIN.fullmatch(text) is not None and _QUOTED_ENCODED_WORD.match(text) is None


def parse_list(text: str, *, groups: bool = True) -> tuple[address.Mailbox, ...]:
    """The addresses in the unfolded value of a field; `written` shows the decoded name. Raises AddressError."""
    text = text.replace("\t", " ").strip(" ")
    simple = None if "=?" in text else _SIMPLE.fullmatch(text)
    if simple is not None:
        quoted = simple["quoted"]
        return (address.parse(text if quoted is None else _written(quoted.strip(" "), simple["angle"])),)
    # An address may stand in its own name: the count is that of the most that could be meant.
    if text.count("@") > 2 * MAX_ADDRESSES:
        raise address.AddressError(f"there are more than {MAX_ADDRESSES} addresses")
    reading = _ListParser()
    at = 0
    for _ in range(MAX_TOKENS):
        if at == len(text):
            return reading.finish()
        token = _TOKEN.match(text, at)
        if token is None:
            raise address.AddressError(_unbalanced_message(text[at:].lstrip(" ")[0]))
        at = token.end()
        if token.lastgroup == "comment":
            at = _after_comment(text, at)
        elif token.lastgroup == "separator":
            reading.separate(token["separator"])
        elif token.lastgroup == "group":
            if not groups:
                raise address.AddressError("a ':' begins a group of addresses, which is not allowed here")
            reading.open_group()
        else:
            reading.take(token)
    raise address.AddressError(f"the list has more than {MAX_TOKENS} tokens")


class _ListParser:
    """What has been read so far: the mailboxes, and the words and the address of the one that is being read."""

    __slots__ = ("_angle", "_in_group", "_mailboxes", "_words")

    def __init__(self) -> None:
        self._mailboxes: list[address.Mailbox] = []
        self._words: list[re.Match[str]] = []
        self._angle: str | None = None
        self._in_group = False

    def take(self, token: re.Match[str]) -> None:
        """A word, or the address between angle brackets."""
        if self._angle is not None:
            raise address.AddressError("a comma is required between '<…>' and the next address")
        if token.lastgroup == "angle":
            self._angle = token["angle"].strip(" ")
        else:
            self._words.append(token)

    def separate(self, mark: str) -> None:
        """The end of a mailbox; the end of a group too, when it is a semicolon."""
        self._end_mailbox()
        if mark == ";":
            self._in_group = False

    def open_group(self) -> None:
        """The words so far are the name of a group, which is dropped."""
        if self._in_group or self._angle is not None or not _name(self._words):
            raise address.AddressError("a ':' is allowed only after a group name, or in double quotes")
        self._words.clear()
        self._in_group = True

    def finish(self) -> tuple[address.Mailbox, ...]:
        self._end_mailbox()
        if self._in_group:
            raise address.AddressError("a ':' begins a group of addresses, but the closing ';' is missing")
        return tuple(self._mailboxes)

    def _end_mailbox(self) -> None:
        if self._angle is not None:
            self._add(_written(_name(self._words), self._angle))
        elif self._words:
            # The parser refuses anything but a single plain word.
            self._add(" ".join([token[0].lstrip(" ") for token in self._words]))
        self._words.clear()
        self._angle = None

    def _add(self, written: str) -> None:
        if len(self._mailboxes) == MAX_ADDRESSES:
            raise address.AddressError(f"there are more than {MAX_ADDRESSES} addresses")
        self._mailboxes.append(address.parse(written))


def _name(words: list[re.Match[str]]) -> str:
    """The words of a name as a reader sees them."""
    parts: list[str] = []
    for word in words:
        if word.lastgroup == "quoted":
            parts.append(address.QUOTED_PAIR.sub(r"\1", word["quoted"]))
            continue
        special = address.NAME_SPECIAL.search(word["word"])
        if special is not None:
            raise address.AddressError(f"a name that contains {special[0]!r} must be in double quotes")
        parts.append(word["word"])
    # Encoded words do not belong into quotes, but clients write them there and readers decode them.
    return header_fields.decode_words(" ".join(parts)).strip(" ")


def _written(name: str, angle: str) -> str:
    """Name and address in the form that the strict parser reads."""
    if not name:
        return angle
    if address.NAME_SPECIAL.search(name) is not None:
        name = header_fields.quote(name)
    return f"{name} <{angle}>"


def _after_comment(text: str, at: int) -> int:
    """Where a comment ends whose first parenthesis has been read; comments may stand in comments."""
    depth = 1
    for mark in _IN_COMMENT.finditer(text, at):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if depth == 0:
            return mark.end()
    raise address.AddressError(_unbalanced_message("("))


def _unbalanced_message(character: str) -> str:
    if character in ")>":
        return f"there is an unmatched {character!r}; put names with special characters in double quotes"
    return f"there is a {character!r} that is never closed"
