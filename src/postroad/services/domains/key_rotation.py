"""Rotation of DKIM keys: a new generation, an overlap in which both are published, and the operator's zone of keys."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from postroad import context, errors
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records
from postroad.model.units import times
from postroad.services import audit_log, usage_limits
from postroad.storage.mail import domains

ROTATIONS: Final = usage_limits.WorkLimit("key rotations", per_account=1, per_process=4, retry_seconds=5)
_ABSENT: Final = (domain_records.RecordState.MISSING, domain_records.RecordState.WRONG)


async def rotate(ctx: context.Context, domain: domains.Domain) -> None:
    """Create the next keys of a domain; nothing when they are there already. Raises Conflict during the overlap."""
    with usage_limits.acquire(ctx, ROTATIONS, domain.account_id):
        await _rotate(ctx, domain)


async def _rotate(ctx: context.Context, domain: domains.Domain) -> None:
    if _has_next(await domain_keys.keys(ctx, domain)):
        return
    generated = await domain_keys.generate_rsa(ctx, domain)
    async with ctx.store.transaction() as tx:
        found = await domain_keys.lock(tx, domain)
        if _has_next(found):
            return
        for key in found:
            if key.status == domains.DkimStatus.OLD:
                await domains.remove_dkim_key(tx, key)
        selector = domain_keys.next_selector(ctx, found)
        await domain_keys.insert_generation(
            ctx, tx, domain, generated, selector=selector, status=domains.DkimStatus.NEXT
        )
        await domains.schedule_check(tx, domain.account_id, domain.id, check_at=ctx.clock())
        await audit_log.write(ctx, tx, domain.account_id, "domain.key_created", domain.name, f"selector {selector}")


async def rotate_by_age(ctx: context.Context, domain: domains.Domain) -> bool:
    """Rotate the keys of a domain that are old enough, where nobody but the operator has to publish the new ones.

    The domain has the alias for them: without it, the new key would wait for its owner.
    """
    days, now = ctx.settings.domains.key_rotation_days, ctx.clock()
    if not ctx.settings.domains.key_zone or not days:
        return False
    async with ctx.store.reading() as tx:
        found = await domains.dkim_keys(tx, domain.account_id, domain.id)
        checks = await domains.checks(tx, domain.account_id, domain.id)
    alias = checks.get(domain_records.RecordPurpose.DKIM_NEXT)
    is_due = all(
        key.created_at + days * times.DAY <= now if key.status == domains.DkimStatus.CURRENT else not key.private_key
        for key in found
    )
    if not is_due or alias is None or alias.state != domain_records.RecordState.OK:
        return False
    await _rotate(ctx, domain)
    return True


async def rotating_since(ctx: context.Context, domain: domains.Domain) -> int | None:
    """Since when the record of the next key is awaited; None when none is."""
    async with ctx.store.reading() as tx:
        found = await domains.dkim_keys(tx, domain.account_id, domain.id)
    return min((key.created_at for key in found if key.status == domains.DkimStatus.NEXT), default=None)


async def apply(ctx: context.Context, domain: domains.Domain, states: Mapping[str, domain_records.RecordState]) -> bool:
    """Apply the states of the records, by selector, to the keys of a domain; returns whether any key changed."""
    async with ctx.store.reading() as tx:
        found = await domains.dkim_keys(tx, domain.account_id, domain.id)
    if _changed(ctx, found, states) == found:
        return False
    async with ctx.store.transaction() as tx:
        found = await domain_keys.lock(tx, domain)
        changed = {key.selector: key for key in _changed(ctx, found, states)}
        for before in found:
            after = changed.get(before.selector)
            if after is None:
                await domains.remove_dkim_key(tx, before)
            elif after != before:
                await domains.update_dkim_key(tx, after)
            for action in _actions(before, after):
                await audit_log.write(ctx, tx, domain.account_id, action, domain.name, f"selector {before.selector}")
    ctx.access_cache.invalidate()
    return True


def _has_next(found: Sequence[domains.DkimKey]) -> bool:
    for key in found:
        if key.status == domains.DkimStatus.OLD and key.private_key:
            until = times.to_wire(_overlap_end(key))
            raise errors.Conflict(f"the previous key is kept until {until}; rotate again after that")
    return any(key.status == domains.DkimStatus.NEXT for key in found)


def _changed(
    ctx: context.Context, found: Sequence[domains.DkimKey], states: Mapping[str, domain_records.RecordState]
) -> list[domains.DkimKey]:
    now = ctx.clock()
    is_next_published = any(
        key.status == domains.DkimStatus.NEXT
        and key.algorithm == domains.DkimAlgorithm.RSA
        and states.get(key.selector) is domain_records.RecordState.OK
        for key in found
    )
    kept = [_advanced(key, now) for key in found] if is_next_published else list(found)
    kept = [_with_publication(key, states.get(key.selector), now) for key in kept]
    return [after for key in kept if (after := _without_secret(key, states.get(key.selector), now)) is not None]


def _advanced(key: domains.DkimKey, now: int) -> domains.DkimKey:
    match key.status:
        case domains.DkimStatus.NEXT:
            return dataclasses.replace(key, status=domains.DkimStatus.CURRENT)
        case domains.DkimStatus.CURRENT:
            return dataclasses.replace(key, status=domains.DkimStatus.OLD, retired_at=now)
        case _:
            return key


def _with_publication(key: domains.DkimKey, state: domain_records.RecordState | None, now: int) -> domains.DkimKey:
    """Whether an Ed25519 key signs. A failure of DNS changes nothing."""
    if key.algorithm != domains.DkimAlgorithm.ED25519 or key.status != domains.DkimStatus.CURRENT:
        return key
    if state is domain_records.RecordState.OK and key.published_at is None:
        return dataclasses.replace(key, published_at=now)
    return dataclasses.replace(key, published_at=None) if state in _ABSENT else key


def _without_secret(key: domains.DkimKey, state: domain_records.RecordState | None, now: int) -> domains.DkimKey | None:
    """An old key loses its private half at the end of the overlap; None when nobody can see it any more."""
    if key.status != domains.DkimStatus.OLD:
        return key
    if key.algorithm == domains.DkimAlgorithm.ED25519 and key.published_at is None:
        return None  # it has signed nothing
    if now < _overlap_end(key):
        return key
    return None if state in _ABSENT else dataclasses.replace(key, private_key=b"")


def _actions(before: domains.DkimKey, after: domains.DkimKey | None) -> list[str]:
    """The entries of the audit log for a change of a key; the RSA key stands for its generation."""
    if before.algorithm != domains.DkimAlgorithm.RSA:
        return []
    actions = []
    if after is not None and before.status == domains.DkimStatus.NEXT and after.status == domains.DkimStatus.CURRENT:
        actions.append("domain.key_activated")
    if before.private_key and (after is None or not after.private_key):
        actions.append("domain.key_deleted")
    return actions


def _overlap_end(key: domains.DkimKey) -> int:
    return (key.retired_at or 0) + domain_keys.OVERLAP_DAYS * times.DAY


PAGE_ROWS: Final = 1_000


async def zone_records(ctx: context.Context) -> list[domain_keys.DkimRecord]:
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


async def _page(ctx: context.Context, after: tuple[str, str, str]) -> Sequence[domains.DkimKey]:
    async with ctx.store.scanning() as tx:
        return await domains.dkim_key_page(tx, after=after, limit=PAGE_ROWS)
