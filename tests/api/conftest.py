"""Listeners are tested with a real context, on both engines."""

from tests.api.management import mine, served, switch, theirs
from tests.contexts import account, clock, ctx, database_url, owner, settings

__all__ = ["account", "clock", "ctx", "database_url", "mine", "owner", "served", "settings", "switch", "theirs"]
