"""The roles that process the queues in the store: delivery and webhooks."""

from postroad.delivery import engine
from postroad.roles import role
from postroad.webhooks import engine as webhooks_engine


async def start_delivery(role_context: role.RoleContext) -> role.Started:
    """Start the delivery engine."""
    delivery_engine = await engine.open_engine(role_context.context, log=role_context.log)

    async def work() -> None:
        await delivery_engine.run(role_context.stopping)

    return role.Started(work)


async def start_webhooks(role_context: role.RoleContext) -> role.Started:
    """Start the webhook engine."""
    webhook_engine = webhooks_engine.Engine(role_context.context, log=role_context.log)

    async def work() -> None:
        await webhook_engine.run(role_context.stopping)

    return role.Started(work)
