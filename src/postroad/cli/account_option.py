"""How an operator names an account: by its id, by its name when one has it, or not at all when there is only one."""

from typing import Any, Final, TypeVar

import click

from postroad import errors
from postroad.model import identifiers
from postroad.services import context as services_context
from postroad.services.accounts import registry as services_accounts
from postroad.storage import accounts

Decorated = TypeVar("Decorated")
# One is the answer; a second shows that the name is not enough.
AMBIGUOUS: Final = 2


def account_option(function: Decorated) -> Decorated:
    """The option `--account`, the same for every command."""
    option: Any = click.option(
        "--account",
        metavar="ACCOUNT",
        help="The account's id or unique name; not needed when there is only one account.",
    )
    decorated: Decorated = option(function)
    return decorated


async def account(context: services_context.Context, named: str | None) -> accounts.Account:
    """The account that the operator means."""
    if named is None:
        return await _only_account(context)
    if identifiers.is_identifier(named, identifiers.ACCOUNT):
        return await services_accounts.find(context, named)
    found = await services_accounts.by_name(context, named, limit=AMBIGUOUS)
    if not found:
        raise errors.NotFound(f"there is no account {named!r}")
    if len(found) == AMBIGUOUS:
        raise errors.Conflict(f"more than one account is called {named!r}; name it by its id")
    return found[0]


async def _only_account(context: services_context.Context) -> accounts.Account:
    found = await services_accounts.page(context, "", AMBIGUOUS)
    if not found:
        raise errors.NotFound("there is no account yet; make one with 'postroad account create'")
    if len(found) == AMBIGUOUS:
        raise errors.InvalidRequest(
            "there are several accounts; name one with --account; 'postroad account list' shows them"
        )
    return found[0]
