"""Templates of other services in the language of ours (`protocol/text/mustache.py`).

What means something else in our language (sections and loops, in which we also look names up in what is around them)
or is not in it (fallbacks) is never approximated: a template that says something else than before would reach
recipients. Such a template is refused with the tag that it is about. The tags of a service are known to the extension
that reads it.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from postroad.protocol.text import mustache, placeholders

# What a tag may contain is bounded, so that a hostile text takes linear time; a longer one is refused by our parser.
_TAG: Final = re.compile(r"\{\{\{([^{}]{0,200})\}\}\}|\{\{([^{}]{0,200})\}\}")
_NAME: Final = re.compile(placeholders.NAME_PATTERN)


class Untranslatable(ValueError):
    """The template uses something that our templates do not support; the message names it."""


class Bodies(msgspec.Struct, frozen=True):
    """A template in either language."""

    subject: str
    text: str | None
    html: str | None


def translated(source: Bodies, tag: Callable[[str, bool, bool], str]) -> Bodies:
    """A template with each tag replaced; `tag` gets its name, whether it is raw, and whether the body is HTML."""

    def part(field: str, text: str) -> str:
        def replaced(match: re.Match[str]) -> str:
            is_raw = match[1] is not None
            try:
                return tag((match[1] if is_raw else match[2]).strip(" "), is_raw, field == "html")
            except Untranslatable as problem:
                raise Untranslatable(f"{field}: {match[0]!r}: {problem}") from None

        made = _TAG.sub(replaced, text)
        try:
            mustache.parse(made)
        except placeholders.TemplateError as problem:
            raise Untranslatable(f"{field}: {problem}") from None
        return made

    return Bodies(
        part("subject", source.subject),
        None if source.text is None else part("text", source.text),
        None if source.html is None else part("html", source.html),
    )


def placeholder(name: str) -> str:
    if name.startswith(("#", "^", "/")) or name == "else":
        raise Untranslatable(
            "sections are not imported, because names in them mean something else here; rewrite them in Postroad"
        )
    if not _NAME.match(name):
        raise Untranslatable("not a name; use a letter or underscore, then letters, digits, '_', '.' and '-'")
    return f"{{{{{name}}}}}"
