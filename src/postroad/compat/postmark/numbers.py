"""Numbers for things that have an id of ours: Postmark's ids are integers, which its packages in typed languages need.

The number of a thing is the end of its id, 52 random bits, because JavaScript has no larger integers. Templates and
domains of an account are few, so they are found by reading their list.
"""

from typing import Final

from postroad.services import context, templates

_DIGITS: Final = 13
_PAGE: Final = 500


def of(identifier: str) -> int:
    """The number of the thing with this id."""
    return int(identifier[-_DIGITS:], 16)


async def template_alias(ctx: context.Context, account_id: str, id_or_alias: str) -> str:
    """The alias of the template with this number; any other text is an alias itself."""
    after = ""
    while id_or_alias.isascii() and id_or_alias.isdigit():
        found = await templates.summaries(ctx, account_id, after, _PAGE)
        for one in found:
            if str(of(one.id)) == id_or_alias:
                return one.alias
        if len(found) < _PAGE:
            break
        after = found[-1].alias
    return id_or_alias
