"""Mail of an account that a test has made: accepted in the store, and delivered by the running service."""

from postroad.services import domains
from tests import mailing
from tests.browser import houses


async def send(house: houses.House, account_id: str, **fields: object) -> str:
    """A message from the account's own domain; its id."""
    (domain,) = await domains.of_account(house.ctx, account_id)
    return await mailing.accept(house.ctx, account_id, sender=f"shop@{domain.name}", **fields)  # type: ignore[arg-type]


async def sent(house: houses.House, **fields: object) -> tuple[str, houses.Login]:
    """The same from a new account, and who may see it."""
    account, login = await house.new_account()
    return await send(house, account.id, **fields), login
