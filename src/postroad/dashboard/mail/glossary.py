"""`/glossary`: what the words of the dashboard mean; docs/glossary.md is written from the same terms."""

import re
from importlib import resources
from typing import Final

import msgspec

from postroad.dashboard.framework import requests
from postroad.web import routing

PATH: Final = "/glossary"


class Section(msgspec.Struct, frozen=True):
    """Terms, each with its meaning: plain text with code between backticks."""

    title: str
    terms: list[tuple[str, str]]


class Glossary(msgspec.Struct, frozen=True):
    """The contents of glossary.toml."""

    sections: list[Section]


_WRITTEN: Final = msgspec.toml.decode((resources.files(__package__) / "glossary.toml").read_bytes(), type=Glossary)
_OF_CREDITS: Final = re.compile(r"\{(.*?)\}")


def sections(*, has_credits: bool) -> list[Section]:
    """The terms; without credits, those that say nothing else are left out."""
    kept = r"\1" if has_credits else ""
    found = []
    for section in _WRITTEN.sections:
        terms = [(term, _OF_CREDITS.sub(kept, meaning)) for term, meaning in section.terms]
        found.append(Section(section.title, [(term, meaning) for term, meaning in terms if meaning]))
    return found


async def index(request: requests.PageRequest) -> routing.Response:
    return request.page("glossary.html", sections=sections(has_credits=request.site.has_credits))


ROUTES: Final = (requests.get(PATH, index),)
