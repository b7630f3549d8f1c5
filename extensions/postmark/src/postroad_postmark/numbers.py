"""Numbers for things that have an id of ours: Postmark's ids are integers of 32 bits in some packages.

The number of a thing comes from the end of its id, which is random. Templates, domains and webhooks of an account are
few, so they are found by reading their list. Among a thousand, two have the same number once in four thousand accounts;
such a number names none of them.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from postroad import context
from postroad.services.templates import templates
from postroad.storage.mail import templates as stored

_DIGITS: Final = 13
_LARGEST: Final = 2**31 - 1
_PAGE: Final = 500
Thing = TypeVar("Thing")


def of(identifier: str) -> int:
    """The number of the thing with this id."""
    return int(identifier[-_DIGITS:], 16) % _LARGEST + 1


def by_number(things: Iterable[Thing], identifier: Callable[[Thing], str]) -> dict[str, Thing]:
    """Things by their numbers as text, without those whose number is that of another."""
    found: dict[str, list[Thing]] = {}
    for thing in things:
        found.setdefault(str(of(identifier(thing))), []).append(thing)
    return {number: same[0] for number, same in found.items() if len(same) == 1}


async def template_alias(ctx: context.Context, account_id: str, id_or_alias: str) -> str:
    """The alias of the template with this number; any other text is an alias itself."""
    if not (id_or_alias.isascii() and id_or_alias.isdigit()):
        return id_or_alias
    return (await template_aliases(ctx, account_id)).get(id_or_alias, id_or_alias)


async def template_aliases(ctx: context.Context, account_id: str) -> dict[str, str]:
    """The aliases of all templates, by alias and by number."""
    found: list[stored.Summary] = []
    while page := await templates.summaries(ctx, account_id, found[-1].alias if found else "", _PAGE):
        found += page
        if len(page) < _PAGE:
            break
    numbered = by_number(found, lambda summary: summary.id)
    return {summary.alias: summary.alias for summary in found} | {
        number: summary.alias for number, summary in numbered.items()
    }
