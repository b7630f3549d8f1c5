"""The option `--account`: an id, a unique name, or nothing when there is only one account."""

from typing import Final

import click

from postroad import errors
from postroad.model import identifiers
from postroad.services import context as services_context
from postroad.services.accounts import registry as services_accounts
from postroad.storage import accounts

# A second row shows that the name is ambiguous.
AMBIGUOUS: Final = 2
OPTION: Final = click.Option(
    ["--account"], metavar="ACCOUNT", help="Account id or unique name; optional if there is only one account."
)


async def account(context: services_context.Context, named: str | None) -> accounts.Account:
    """The account that the option names."""
    if named is None:
        return await _only_account(context)
    if identifiers.is_identifier(named, identifiers.ACCOUNT):
        return await services_accounts.find(context, named)
    found = await services_accounts.by_name(context, named, limit=AMBIGUOUS)
    if not found:
        raise errors.NotFound(f"account {named!r} does not exist")
    if len(found) == AMBIGUOUS:
        raise errors.Conflict(f"more than one account is named {named!r}; use its id")
    return found[0]


async def _only_account(context: services_context.Context) -> accounts.Account:
    found = await services_accounts.page(context, "", AMBIGUOUS)
    if not found:
        raise errors.NotFound("there are no accounts; create one with 'postroad account create'")
    if len(found) == AMBIGUOUS:
        raise errors.InvalidRequest(
            "there is more than one account; choose one with --account (see 'postroad account list')"
        )
    return found[0]
