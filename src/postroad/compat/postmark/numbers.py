"""Numbers for things that have an id of ours: Postmark's ids are integers, which its packages in typed languages need.

The number of a thing is the end of its id, 52 random bits, because JavaScript has no larger integers. Templates and
domains of an account are few, so they are found by reading their list.
"""

from typing import Final

from postroad.services import context, templates
from postroad.storage import templates as stored

_DIGITS: Final = 13
_PAGE: Final = 500


def of(identifier: str) -> int:
    """The number of the thing with this id."""
    return int(identifier[-_DIGITS:], 16)


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
    return {one.alias: one.alias for one in found} | {str(of(one.id)): one.alias for one in found}
