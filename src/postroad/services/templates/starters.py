"""Starters: templates to begin with. Each is a file of `starters/`; all but the blank one share its `layout.html`.

The layout is put around the content when somebody begins, so what they get is one whole template that they can edit.
"""

import functools
import tomllib
from importlib import resources
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.services.templates import templates

# In the order in which they are offered.
NAMES: Final = (
    "blank",
    "welcome",
    "confirm-email",
    "password-reset",
    "sign-in-code",
    "magic-link",
    "invitation",
    "receipt",
    "invoice",
    "shipping",
    "payment-failed",
    "alert",
    "weekly-summary",
)


class Starter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file: `preheader` is what mail clients show beside the subject, and `values` are test values."""

    title: str
    subject: str
    html: str
    text: str
    values: dict[str, Any]
    preheader: str = ""
    footer: str = ""
    has_layout: bool = True


def find(name: str) -> Starter:
    if name not in NAMES:
        raise errors.NotFound("no such starter")
    return _load(name)


def content(starter: Starter) -> templates.Content:
    """The starter as a template."""
    sample = msgspec.json.format(msgspec.json.encode(starter.values), indent=2).decode()
    if not starter.has_layout:
        return templates.Content(starter.subject, starter.text, starter.html, sample=sample)
    html = _file("layout.html")
    for place in ("subject", "preheader", "footer"):
        html = html.replace(f"{{{{> {place}}}}}", getattr(starter, place))
    html = html.replace("{{> content}}\n", starter.html)
    return templates.Content(starter.subject, starter.text, html, sample=sample)


@functools.cache
def _load(name: str) -> Starter:
    return msgspec.convert(tomllib.loads(_file(f"{name}.toml")), Starter)


def _file(name: str) -> str:
    return resources.files("postroad.services.templates").joinpath("starters", name).read_text()
