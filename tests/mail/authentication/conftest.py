"""Authentication is tested on a real context, whose resolver asks a name server of the test."""

from tests.contexts import account, clock, ctx, database_url, owner, settings

__all__ = ["account", "clock", "ctx", "database_url", "owner", "settings"]
