"""Mail of an account that a test has made: accepted in the store, and delivered by the running service."""

from postroad.services.domains import domain_registry as domains
from tests import accepted_mail
from tests.browser import dev_service


async def send(dev: dev_service.DevService, account_id: str, **fields: object) -> str:
    """A message from the account's own domain; its id."""
    (domain,) = await domains.of_account(dev.ctx, account_id)
    return await accepted_mail.accept(dev.ctx, account_id, sender=f"shop@{domain.name}", **fields)  # type: ignore[arg-type]


async def send_from_new_account(dev: dev_service.DevService, **fields: object) -> tuple[str, dev_service.Login]:
    """The same from a new account, and who may see it."""
    account, login = await dev.new_account()
    return await send(dev, account.id, **fields), login
