"""Contexts that act for a user, as listeners make them, and the audit log as tests read it."""

import dataclasses

from postroad import context
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.storage.people import audit_log as stored
from postroad.storage.people import users

REQUEST = "req_" + "a" * 28
ADDRESS = "192.0.2.1"


def as_user(ctx: context.Context, user: users.User) -> context.Context:
    """The same context, acting for this user."""
    return dataclasses.replace(ctx, actor=callers.Actor(callers.ActorKind.PERSON, user.id, REQUEST, ADDRESS))


async def entries(ctx: context.Context, account_id: str) -> list[stored.Entry]:
    """Everything in the audit log of an account."""
    return await audit_log.page(ctx, account_id, before=None, limit=100)


async def summaries(ctx: context.Context, account_id: str) -> list[tuple[str, str, str]]:
    """The same as actions, subjects and details, in the order of their names: the clock of a test may stand still."""
    return sorted((entry.action, entry.subject, entry.detail) for entry in await entries(ctx, account_id))
