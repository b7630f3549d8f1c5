"""Templates of Postmark (Mustachio) in our language.

It writes `{{name}}`, or `{{{name}}}` for HTML that is inserted as it is, and has sections, loops, comments and layouts.
A layout is merged into its template, and comments are removed.
"""

import re
from typing import Final

from postroad.services.imports import foreign_templates

_CONTENT: Final = re.compile(r"\{\{\{?[ ]{0,20}@content[ ]{0,20}\}?\}\}")
# Postmark has it once. More would make a few megabytes of theirs many gigabytes of ours.
MAX_CONTENTS: Final = 10


def translate(
    source: foreign_templates.Bodies, layout: foreign_templates.Bodies | None = None
) -> foreign_templates.Bodies:
    """A template of Postmark, in its layout."""
    if layout is not None:
        source = foreign_templates.Bodies(
            source.subject, _laid_out(layout.text, source.text), _laid_out(layout.html, source.html)
        )
    return foreign_templates.translated(source, _postmark_tag)


def _laid_out(layout: str | None, content: str | None) -> str | None:
    if not layout or content is None:
        return content
    if len(_CONTENT.findall(layout)) > MAX_CONTENTS:
        raise foreign_templates.Untranslatable(f"its layout has the content more than {MAX_CONTENTS} times")
    return _CONTENT.sub(lambda _: content, layout)


def _postmark_tag(name: str, is_raw: bool, is_html: bool) -> str:  # noqa: FBT001 - called in one place
    if name.startswith("!"):
        return ""
    if name.startswith("&"):
        name, is_raw = name[1:].strip(" "), True
    placeholder = foreign_templates.placeholder(name)
    return f"{{{placeholder}}}" if is_raw and is_html else placeholder
