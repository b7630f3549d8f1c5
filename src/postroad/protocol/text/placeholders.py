"""`{{name}}` in a text, replaced by a value: the templates that have nothing else, which are most (`mustache.py`).

A name is a letter or underscore, then letters, digits, `_`, `.` and `-`, 64 at most. The value of `a.b` is that of the
key `a.b`, or else of the key `b` inside `a`. Spaces (no tabs, no line breaks) may stand inside the braces. Every other
use of `{{`, and every `{%`, is refused when the template is parsed: it is a slip or another template language, and
would otherwise reach the recipient. A `}}` alone is text, because style sheets end that way. A value is put in once and
is never read as a template itself; in HTML its `& < > " '` are escaped. To show a literal `{{`, pass it as a value.
"""

import html
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

NAME_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_.\-]{0,63}$"
# A message may have 10 MiB; a longer text can never be sent, and a small template can repeat a large value very often.
MAX_RENDERED_CHARACTERS: Final = 10 * 1024 * 1024
# Tried in this order at every place: what opens and is not a whole placeholder has no name.
_OPENING_OR_PLACEHOLDER: Final = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_.\-]{0,63}) *\}\}|\{[{%]")
_SHOWN_CHARACTERS: Final = 40
_INTEGER_BITS: Final = 64


class TemplateError(ValueError):
    """The text is not a template, or a value does not fit it. The message is safe to show."""


class SyntaxProblem(TemplateError):
    """The text is not a template. Line and column of the mistake count from 1."""

    def __init__(self, message: str, *, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class MissingValues(TemplateError):
    def __init__(self, names: tuple[str, ...]) -> None:
        listed = ", ".join(f"'{name}'" for name in names)
        super().__init__(f"{'a value is' if len(names) == 1 else 'values are'} missing for {listed}")
        self.names = names


class RenderedTooLarge(TemplateError):
    """The rendered text would be larger than any message may be."""

    def __init__(self) -> None:
        super().__init__(f"the rendered text is longer than {MAX_RENDERED_CHARACTERS} characters")


class Template(msgspec.Struct, frozen=True):
    """Literal texts with a name between each two: there is always one literal more than there are names."""

    literals: tuple[str, ...]
    placeholders: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name once, in the order of its first use."""
        return tuple(dict.fromkeys(self.placeholders))

    def render(self, values: Mapping[str, object], *, escape_html: bool) -> str:
        """The text with each placeholder replaced; a value without a placeholder is ignored."""
        missing = tuple(name for name in self.names if values.get(name) is None)
        if missing:
            values = _with_paths(values, missing)
        texts = {name: text_of(name, values[name]) for name in self.names}
        if escape_html:
            texts = {name: html.escape(text, quote=True) for name, text in texts.items()}
        length = sum(map(len, self.literals)) + sum(len(texts[name]) for name in self.placeholders)
        if length > MAX_RENDERED_CHARACTERS:
            raise RenderedTooLarge
        pieces = [self.literals[0]]
        for name, literal in zip(self.placeholders, self.literals[1:], strict=True):
            pieces += (texts[name], literal)
        return "".join(pieces)


def parse(source: str) -> Template:
    """The template, or a `TemplateError` that quotes the first thing that is not a placeholder."""
    literals: list[str] = []
    names: list[str] = []
    end = 0
    for match in _OPENING_OR_PLACEHOLDER.finditer(source):
        if match[1] is None:
            raise not_a_placeholder(source, start=match.start())
        literals.append(source[end : match.start()])
        names.append(match[1])
        end = match.end()
    literals.append(source[end:])
    return Template(tuple(literals), tuple(names))


def not_a_placeholder(
    source: str, *, start: int, expected: str = "expected a name in double braces, such as {{name}}"
) -> SyntaxProblem:
    """What opens at this place and is not a placeholder."""
    close = source.find("}}" if source[start + 1] == "{" else "%}", start, start + _SHOWN_CHARACTERS)
    excerpt = source[start : close + 2] if close >= 0 else source[start : start + _SHOWN_CHARACTERS] + "…"
    line, column = position(source, start)
    return SyntaxProblem(f"{excerpt!r} in line {line} is not a placeholder, {expected}", line=line, column=column)


def position(source: str, start: int) -> tuple[int, int]:
    return source.count("\n", 0, start) + 1, start - source.rfind("\n", 0, start)


def inside(value: object, path: Sequence[str]) -> object:
    """The value at a path of keys, None if there is none."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _with_paths(values: Mapping[str, object], absent: tuple[str, ...]) -> Mapping[str, object]:
    """The values and those of names with dots that are found inside others. Raises MissingValues for the rest."""
    found = {name: inside(values, name.split(".")) for name in absent}
    missing = tuple(name for name, value in found.items() if value is None)
    if missing:
        raise MissingValues(missing)
    return {**values, **found}


def text_of(name: str, value: object) -> str:
    """The value as text: what JSON would write, without the quotes of a string."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() <= _INTEGER_BITS:
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    raise TemplateError(f"the value of '{name}' must be a string, a number or a boolean")
