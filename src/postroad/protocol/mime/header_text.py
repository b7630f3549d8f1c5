"""Which strings may appear in a header.

Every string that reaches a header is checked here. Line breaks would start a header of the caller's choice; other
control characters and Unicode line separators are treated as line breaks by some readers (`str.splitlines` is one); an
encoded word in the input (RFC 2047) would be decoded by the recipient into unchecked text. All of them are refused, not
repaired. Field names are tokens, narrower than RFC 5322 section 3.6.8 allows. The two patterns say the same for JSON
Schema.
"""

import re
from typing import Final

MAX_NAME_CHARACTERS: Final = 76  # with the colon and a space, a name fits on a line of 78
_CONTROLS: Final = r"\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029"  # all but the tab
_ENCODED_WORD: Final = r"=\?[^?]*\?[bBqQ]\?"
NAME_PATTERN: Final = rf"^[A-Za-z0-9!#$%&'*+.^_`|~\-]{{1,{MAX_NAME_CHARACTERS}}}$"
VALUE_PATTERN: Final = rf"^(?![\s\S]*{_ENCODED_WORD})[^{_CONTROLS}]*$"

_NAME: Final = re.compile(NAME_PATTERN.strip("^$"))
_FORBIDDEN: Final = re.compile(rf"[{_CONTROLS}\ud800-\udfff]")
_BEGINS_ENCODED_WORD: Final = re.compile(_ENCODED_WORD)
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
