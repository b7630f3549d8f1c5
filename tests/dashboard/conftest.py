"""Pages are tested over HTTP with a real context, on both engines."""

from tests.contexts import clock, ctx, database_url
from tests.dashboard.browsing import (
    browser,
    mail,
    member,
    mine,
    nobody,
    prepared,
    reader,
    served,
    settings,
    site,
    stranger,
    switch,
    theirs,
)

__all__ = [
    "browser",
    "clock",
    "ctx",
    "database_url",
    "mail",
    "member",
    "mine",
    "nobody",
    "prepared",
    "reader",
    "served",
    "settings",
    "site",
    "stranger",
    "switch",
    "theirs",
]
