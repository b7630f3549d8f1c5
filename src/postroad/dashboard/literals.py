"""Texts of code with places for values, and how each language writes a value.

A value is written as a literal of the text's own language, so that whatever is in it (an address with an apostrophe, a
host that a browser names) is never taken for code.
"""

import json
import re
import shlex
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

_BARE: Final = re.compile(r"[A-Za-z0-9_.@+-]+")


class _Text(string.Template):
    """A text with places for values. The languages here use `$`, `%` and braces themselves."""

    delimiter = "@"


@dataclass(frozen=True, slots=True)
class Source:
    """A text before its values are in it; `literal` writes a value in its language. `install` brings what it needs."""

    title: str
    note: str
    literal: Callable[[str], str]
    text: str
    install: str = ""

    def filled(self, values: Mapping[str, str], pieces: Mapping[str, str]) -> str:
        """The text with its values as literals, and with what is a piece of it already."""
        written = {name: self.literal(value) for name, value in values.items()}
        return _Text(self.text).substitute(written, **pieces)


def shell(value: str) -> str:
    """A word of a shell."""
    return shlex.quote(value)


def double(value: str) -> str:
    """A string of Python and of JavaScript."""
    return json.dumps(value, ensure_ascii=False)


def single(value: str) -> str:
    """A string of PHP and of Ruby; in double quotes both would look for `$x` and `#{x}`."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def go(value: str) -> str:
    """A string of Go. Byte order marks would be refused as they are, and surrogates as escapes."""
    return '"' + "".join(_go_character(one) for one in value) + '"'


def java(value: str) -> str:
    """A string of Java, in ASCII: up to version 17 compilers read files in the encoding of the system.

    It reads escapes of code points before it reads strings, so that of a line break would end the line. JSON has none.
    """
    return json.dumps(value)


def dotenv(value: str) -> str:
    """A value of a .env file."""
    if _BARE.fullmatch(value):
        return value
    return '"' + re.sub(r'([\\"$])', r"\\\1", value) + '"'


def _go_character(one: str) -> str:
    if one in '\\"':
        return f"\\{one}"
    return one if one.isprintable() else f"\\U{ord(one):08x}"
