"""The operator's zone of DKIM keys (`domains.key_zone`), to which the aliases of customers' domains lead."""

from collections.abc import Sequence
from typing import Final

from postroad import errors
from postroad.services import context
from postroad.services.dkim import domain_keys
from postroad.storage import dkim_keys

PAGE_ROWS: Final = 1_000


async def records(ctx: context.Context) -> list[domain_keys.DkimRecord]:
    """The records of the zone: all keys that sign, will sign, or have signed mail that may be in flight."""
    key_zone = ctx.settings.domains.key_zone
    if not key_zone:
        raise errors.InvalidRequest("domains.key_zone is not set: customers publish their keys themselves")
    made: list[domain_keys.DkimRecord] = []
    after = ("", "", "")
    while found := await _page(ctx, after):
        after = (found[-1].account_id, found[-1].domain_id, found[-1].selector)
        for key in found:
            name = domain_keys.zone_name(key.domain_id, key.selector, zone=key_zone)
            made.append(domain_keys.DkimRecord(key.selector, name, "TXT", domain_keys.text(key)))
    return made


async def _page(ctx: context.Context, after: tuple[str, str, str]) -> Sequence[dkim_keys.DkimKey]:
    async with ctx.store.scanning() as tx:
        return await dkim_keys.page(tx, after=after, limit=PAGE_ROWS)
