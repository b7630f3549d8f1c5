"""Templates of other services in the language of ours (`protocol/text/mustache.py`).

Resend writes variables as `{{{NAME}}}`. Postmark (Mustachio) writes `{{name}}`, or `{{{name}}}` for HTML that is
inserted as it is, and has sections, loops, comments and layouts. A layout is merged into its template, and comments are
removed. What means something else in our language (sections and loops, in which we also look names up in what is
around them) or is not in it (fallbacks) is never approximated: a template that says something else than before would
reach recipients. Such a template is refused with the tag that it is about.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from postroad.protocol.text import mustache, placeholders

# What a tag may contain is bounded, so that a hostile text takes linear time; a longer one is refused by our parser.
_TAG: Final = re.compile(r"\{\{\{([^{}]{0,200})\}\}\}|\{\{([^{}]{0,200})\}\}")
_NAME: Final = re.compile(placeholders.NAME_PATTERN)
_CONTENT: Final = re.compile(r"\{\{\{?[ ]{0,20}@content[ ]{0,20}\}?\}\}")
# Postmark has it once. More would make a few megabytes of theirs many gigabytes of ours.
MAX_CONTENTS: Final = 10
# Resend replaces these itself.
_RESEND_OWN: Final = re.compile(r"RESEND_|contact\.|CONTACT_|FIRST_NAME$|LAST_NAME$|EMAIL$|UNSUBSCRIBE_URL$")


class Untranslatable(ValueError):
    """The template uses something that our templates do not support; the message names it."""


class Bodies(msgspec.Struct, frozen=True):
    """A template in either language."""

    subject: str
    text: str | None
    html: str | None


def from_resend(source: Bodies) -> Bodies:
    """A template of Resend. Our language escapes the values of HTML bodies, which the caller is told."""
    return _translated(source, _resend_tag)


def from_postmark(source: Bodies, layout: Bodies | None = None) -> Bodies:
    """A template of Postmark, in its layout."""
    if layout is not None:
        source = Bodies(source.subject, _laid_out(layout.text, source.text), _laid_out(layout.html, source.html))
    return _translated(source, _postmark_tag)


def _laid_out(layout: str | None, content: str | None) -> str | None:
    if not layout or content is None:
        return content
    if len(_CONTENT.findall(layout)) > MAX_CONTENTS:
        raise Untranslatable(f"its layout has the content more than {MAX_CONTENTS} times")
    return _CONTENT.sub(lambda _: content, layout)


def _translated(source: Bodies, tag: Callable[[str, bool, bool], str]) -> Bodies:
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


def _resend_tag(name: str, is_raw: bool, is_html: bool) -> str:  # noqa: FBT001 - called in one place
    del is_raw, is_html
    if name.startswith("!"):
        return ""
    if "|" in name:
        raise Untranslatable("a fallback is not supported; pass the value with every message")
    if _RESEND_OWN.match(name):
        raise Untranslatable("this value comes from Resend's contacts and broadcasts; pass one of your own")
    return _placeholder(name)


def _postmark_tag(name: str, is_raw: bool, is_html: bool) -> str:  # noqa: FBT001 - called in one place
    if name.startswith("!"):
        return ""
    if name.startswith("&"):
        name, is_raw = name[1:].strip(" "), True
    placeholder = _placeholder(name)
    return f"{{{placeholder}}}" if is_raw and is_html else placeholder


def _placeholder(name: str) -> str:
    if name.startswith(("#", "^", "/")) or name == "else":
        raise Untranslatable(
            "sections are not imported, because names in them mean something else here; rewrite them in Postroad"
        )
    if not _NAME.match(name):
        raise Untranslatable("not a name; use a letter or underscore, then letters, digits, '_', '.' and '-'")
    return f"{{{{{name}}}}}"
