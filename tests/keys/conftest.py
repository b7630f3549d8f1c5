"""Services are tested on a real context, on both engines."""

from tests.contexts import account, clock, ctx, database_url, owner, settings

__all__ = ["account", "clock", "ctx", "database_url", "owner", "settings"]
