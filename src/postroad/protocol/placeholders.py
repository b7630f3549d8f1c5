"""`{{name}}` in a text, replaced by a value, and nothing more: no expressions, no filters, no code.

A name is a letter or underscore, then letters, digits, `_`, `.` and `-`, 64 at most; it is a key, so `a.b` looks
nothing up inside `a`. Spaces (no tabs, no line breaks) may stand inside the braces. Every other use of `{{`, and
every `{%`, is refused when the template is parsed: it is a slip or another template language, and would otherwise
reach the recipient. A `}}` alone is text, because style sheets end that way. A value is put in once and is never read
as a template itself; in HTML its `& < > " '` are escaped. To show a literal `{{`, pass it as a value.
"""

import html
import math
import re
from collections.abc import Mapping
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


class MissingValues(TemplateError):
    """Placeholders have no value."""

    def __init__(self, names: tuple[str, ...]) -> None:
        listed = ", ".join(f"'{name}'" for name in names)
        super().__init__(f"{'a value is' if len(names) == 1 else 'values are'} missing for {listed}")
        self.names = names


class RenderedTooLarge(TemplateError):
    """The rendered text would be larger than any message may be."""


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
            raise MissingValues(missing)
        texts = {name: _text_of(name, values[name]) for name in self.names}
        if escape_html:
            texts = {name: html.escape(text, quote=True) for name, text in texts.items()}
        length = sum(map(len, self.literals)) + sum(len(texts[name]) for name in self.placeholders)
        if length > MAX_RENDERED_CHARACTERS:
            raise RenderedTooLarge(f"the rendered text is longer than {MAX_RENDERED_CHARACTERS} characters")
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
            raise TemplateError(_what_is_wrong(source, start=match.start()))
        literals.append(source[end : match.start()])
        names.append(match[1])
        end = match.end()
    literals.append(source[end:])
    return Template(tuple(literals), tuple(names))


def _what_is_wrong(source: str, *, start: int) -> str:
    close = source.find("}}" if source[start + 1] == "{" else "%}", start, start + _SHOWN_CHARACTERS)
    excerpt = source[start : close + 2] if close >= 0 else source[start : start + _SHOWN_CHARACTERS] + "…"
    line = source.count("\n", 0, start) + 1
    return f"{excerpt!r} in line {line} is not a placeholder, expected a name in double braces, such as {{{{name}}}}"


def _text_of(name: str, value: object) -> str:
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
