"""Code templates, and how each language writes a string literal.

A value is always inserted as a literal of the snippet's language, so that its content (an address with an apostrophe, a
host name sent by the browser) is never executed as code.
"""

import json
import re
import shlex
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad.model.mail import statuses

_BARE: Final = re.compile(r"[A-Za-z0-9_.@+-]+")


class _Text(string.Template):
    """A template with `@name` placeholders: the languages use `$`, `%` and braces themselves."""

    delimiter = "@"


# The members of an email, by their names in the API: a text, several, pairs of texts, or the variables of a template.
Members = Mapping[str, str | Sequence[str] | Mapping[str, statuses.TemplateValue]]


class MemberStyle(msgspec.Struct, frozen=True, kw_only=True):
    """How a language writes the members of an email, each on a line of its own."""

    line: str
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    several: str = "[{}]"
    pair: str = "{}: {}"
    pairs: str = "{{{}}}"
    # Lists, objects and their members inside of variables; an empty text stands for the forms above.
    array: str = ""
    object: str = ""
    entry: str = ""
    booleans: tuple[str, str] = ("false", "true")
    # Members that the library takes as a list, even of one.
    lists: frozenset[str] = frozenset()
    # Each pair is a line of its own.
    has_separate_pairs: bool = False
    is_aligned: bool = False

    def written(self, members: Members, literal: Callable[[str], str]) -> str:
        width = max(len(self.names.get(name, name)) for name in members) + 1 if self.is_aligned else 0
        lines = []
        for name, value in members.items():
            shown = self.names.get(name, name)
            for text in self._values(name, value, literal):
                gap = " " * (width - len(shown)) if self.is_aligned else ""
                lines.append(self.line.format(name=shown, gap=gap, value=text))
        return "\n".join(lines)

    def _values(
        self,
        name: str,
        value: str | Sequence[str] | Mapping[str, statuses.TemplateValue],
        literal: Callable[[str], str],
    ) -> list[str]:
        if isinstance(value, Mapping):
            if name == "variables" and not self.has_separate_pairs:
                return [self._variable(value, literal)]
            pairs = [self.pair.format(literal(key), self._variable(part, literal)) for key, part in value.items()]
            return pairs if self.has_separate_pairs else [self.pairs.format(", ".join(pairs))]
        given = [value] if isinstance(value, str) else list(value)
        if len(given) == 1 and name not in self.lists:
            return [literal(given[0])]
        return [self.several.format(", ".join(map(literal, given)))]

    def _variable(self, value: statuses.TemplateValue | Mapping[str, Any], literal: Callable[[str], str]) -> str:
        if isinstance(value, bool):
            return self.booleans[value]
        if isinstance(value, Mapping):
            entry = self.entry or self.pair
            entries = [entry.format(literal(key), self._variable(item, literal)) for key, item in value.items()]
            return (self.object or self.pairs).format(", ".join(entries))
        if isinstance(value, list):
            return (self.array or self.several).format(", ".join(self._variable(item, literal) for item in value))
        return literal(value) if isinstance(value, str) else str(value)


def _double(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _single(value: str) -> str:
    """A PHP or Ruby string; in double quotes both would interpolate `$x` and `#{x}`."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _go(value: str) -> str:
    """A Go string. Go rejects literal byte order marks, and escaped surrogates."""
    return '"' + "".join(_go_character(character) for character in value) + '"'


def _dotenv(value: str) -> str:
    if _BARE.fullmatch(value):
        return value
    return '"' + re.sub(r'([\\"$])', r"\\\1", value) + '"'


def _go_character(character: str) -> str:
    if character in '\\"':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


QUOTING: Final[Mapping[str, Callable[[str], str]]] = {
    "shell": shlex.quote,
    "double": _double,
    "single": _single,
    "go": _go,
    # In ASCII: up to version 17, Java's compilers read files in the system's encoding. Java expands Unicode escapes
    # before it parses strings, so an escaped line break would end the line. JSON has none.
    "java": json.dumps,
    "dotenv": _dotenv,
}


class Source(msgspec.Struct, frozen=True):
    """A snippet before its values are filled in; `quoting` is a name of `QUOTING`, `install` installs the library.

    `members` writes the members of the email where the text has `@members`.
    """

    title: str
    quoting: str
    text: str
    note: str = ""
    install: str = ""
    members: MemberStyle | None = None

    def literal(self, value: str) -> str:
        return QUOTING[self.quoting](value)

    def filled(self, values: Mapping[str, str], pieces: Mapping[str, str]) -> str:
        """The code with `values` as literals and `pieces` inserted as they are."""
        written = {name: self.literal(value) for name, value in values.items()}
        return _Text(self.text).substitute(written, **pieces)
