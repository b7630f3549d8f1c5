"""The engines: what works on the store until the stop."""

from postroad.delivery import engine
from postroad.roles import duties
from postroad.webhooks import engine as webhooks_engine


async def start_delivery(duty: duties.Duty) -> duties.Started:
    """The engine that brings mail to its destinations."""
    deliverer = await engine.open_engine(duty.context, log=duty.log)

    async def work() -> None:
        await deliverer.run(duty.stopping)

    return duties.Started(work)


async def start_webhooks(duty: duties.Duty) -> duties.Started:
    """The engine that tells customers what became of their mail."""
    teller = webhooks_engine.Engine(duty.context, log=duty.log)

    async def work() -> None:
        await teller.run(duty.stopping)

    return duties.Started(work)
