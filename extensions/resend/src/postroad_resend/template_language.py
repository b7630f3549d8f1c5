"""Templates of Resend, which writes variables as `{{{NAME}}}`, in our language."""

import re
from typing import Final

from postroad.services.imports import foreign_templates

# Resend replaces these itself.
_RESEND_OWN: Final = re.compile(r"RESEND_|contact\.|CONTACT_|FIRST_NAME$|LAST_NAME$|EMAIL$|UNSUBSCRIBE_URL$")


def translate(source: foreign_templates.Bodies) -> foreign_templates.Bodies:
    """A template of Resend. Our language escapes the values of HTML bodies, which the caller is told."""
    return foreign_templates.translated(source, _resend_tag)


def _resend_tag(name: str, is_raw: bool, is_html: bool) -> str:  # noqa: FBT001 - called in one place
    del is_raw, is_html
    if name.startswith("!"):
        return ""
    if "|" in name:
        raise foreign_templates.Untranslatable("a fallback is not supported; pass the value with every message")
    if _RESEND_OWN.match(name):
        raise foreign_templates.Untranslatable(
            "this value comes from Resend's contacts and broadcasts; pass one of your own"
        )
    return foreign_templates.placeholder(name)
