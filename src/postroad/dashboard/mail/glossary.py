"""`/glossary`: what the words of the dashboard mean; docs/glossary.md is written from the same terms."""

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


SECTIONS: Final = msgspec.toml.decode(
    (resources.files(__package__) / "glossary.toml").read_bytes(), type=Glossary
).sections


async def index(request: requests.PageRequest) -> routing.Response:
    return request.page("glossary.html", sections=SECTIONS)


ROUTES: Final = (requests.get(PATH, index),)
