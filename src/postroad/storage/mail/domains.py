"""Sender domains with their DKIM keys, DNS checks and warm-ups.

Names are A-labels. Many accounts can register a name, but only one can verify it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.domains import warmup
from postroad.storage.engine import queries, store

# Every list has a limit; callers page through longer ones.
MAX_ROWS: Final = 10_000
# Who verified a domain.
OPERATOR: Final = "operator"
DNS: Final = "dns"


@dataclass(frozen=True, slots=True)
class Domain:
    """A row of `domains`."""

    id: str
    account_id: str
    name: str
    verified_at: int | None
    created_at: int
    warm: int = 0
    verified_by: str | None = None
    failing_since: int | None = None
    check_at: int = 0
    return_path_domain: str = ""
    link_host: str | None = None


async def insert(tx: store.Transaction, domain: Domain) -> bool:
    """Register a domain; False when the account has it already, or it is verified here and by another account."""
    row = (domain.id, domain.account_id, domain.name, domain.verified_at, domain.created_at, domain.verified_by)
    return await tx.execute("domains.insert", *row) == 1


@queries.row("domains.by_name", Domain)
async def by_name(tx: store.Transaction, account_id: str, name: str) -> Domain | None: ...
@queries.row("domains.by_id", Domain)
async def by_id(tx: store.Transaction, account_id: str, domain_id: str) -> Domain | None: ...
@queries.rows("domains.of_account", Domain)
async def of_account(
    tx: store.Transaction, account_id: str, *, after: str = "", limit: int = MAX_ROWS
) -> list[Domain]: ...
@queries.row("domains.verified_owner", str)
async def verified_owner(tx: store.Transaction, name: str) -> str | None: ...
# Mark a domain as verified by `OPERATOR` or `DNS`; False when it was already, by the same or by an operator.
@queries.changed("domains.verify")
async def verify(tx: store.Transaction, account_id: str, domain_id: str, *, now: int, by: str) -> bool: ...


async def set_warm(tx: store.Transaction, account_id: str, domain_id: str, *, warm: bool) -> bool:
    """Set whether a domain skips the warm-up; False when there is no such domain."""
    return await tx.execute("domains.set_warm", account_id, domain_id, int(warm)) == 1


@queries.change("domains.set_link_host")
async def set_link_host(tx: store.Transaction, account_id: str, domain_id: str, *, link_host: str | None) -> None: ...
# Unverify a domain that DNS verified and that has failed since before that time; False when it does not apply.
@queries.changed("domains.unverify")
async def unverify(tx: store.Transaction, account_id: str, domain_id: str, *, failing_before: int) -> bool: ...
# Domains whose DNS check is due, longest due first; they are claimed until `until`.
@queries.rows("domains.claim_due", Domain)
async def claim_due(tx: store.Transaction, *, now: int, until: int, limit: int) -> list[Domain]: ...


async def record_check(
    tx: store.Transaction,
    account_id: str,
    domain_id: str,
    *,
    check_at: int,
    failing_since: int | None,
    return_path_domain: str,
) -> bool:
    """Store what follows from a DNS check; False when the domain is gone."""
    row = (account_id, domain_id, check_at, failing_since, return_path_domain)
    return await tx.execute("domains.record_check", *row) == 1


@queries.change("domains.schedule_check")
async def schedule_check(tx: store.Transaction, account_id: str, domain_id: str, *, check_at: int) -> None: ...
# Note that a DNS check is requested now; False when there is no such domain, or one was requested since then.
@queries.changed("domains.mark_check_requested")
async def mark_check_requested(
    tx: store.Transaction, account_id: str, domain_id: str, *, now: int, not_since: int
) -> bool: ...
@queries.row("domains.check_requested_at", int)
async def check_requested_at(tx: store.Transaction, account_id: str, domain_id: str) -> int | None: ...
@queries.changed("domains.remove")
async def remove(tx: store.Transaction, account_id: str, domain_id: str) -> bool: ...
@queries.count("domains.count")
async def count(tx: store.Transaction, account_id: str) -> int: ...


class Check(msgspec.Struct, frozen=True):
    """A row of `domain_checks`. `found` are the published records of the same kind, one on each line."""

    account_id: str
    domain_id: str
    purpose: str
    state: str
    detail: str
    found: str
    checked_at: int


async def put_checks(tx: store.Transaction, checks: Sequence[Check]) -> None:
    await tx.execute_many("domain_checks.put", [msgspec.structs.astuple(check) for check in checks])


async def checks(tx: store.Transaction, account_id: str, domain_id: str) -> dict[str, Check]:
    """The last results of a domain, by purpose."""
    checks = [Check(*row) for row in await tx.fetch("domain_checks.of_domain", account_id, domain_id)]
    return {check.purpose: check for check in checks}


@queries.change("domain_checks.remove")
async def remove_checks(tx: store.Transaction, account_id: str, domain_id: str) -> None: ...


# DKIM keys of sender domains. Private keys are stored encrypted.
#
# A generation is an RSA key and an Ed25519 key. A domain has one that signs, and while its keys are rotated a next or
# an old one. Who changes keys first locks the access version's row, so that changes do not overlap.


class DkimAlgorithm(StrEnum):
    """The type of a key, as its record names it (RFC 8463 section 4)."""

    RSA = "rsa"
    ED25519 = "ed25519"


class DkimStatus(StrEnum):
    """The stage of a generation: its record is awaited, it signs, or it has signed."""

    NEXT = "next"
    CURRENT = "current"
    OLD = "old"


@dataclass(frozen=True, slots=True)
class DkimKey:
    """A row of `dkim_keys`. The private key is empty when it was deleted at the end of the overlap.

    The public key is a SubjectPublicKeyInfo in DER for RSA, and the 32 octets of the key for Ed25519.
    """

    account_id: str
    domain_id: str
    selector: str
    private_key: bytes = field(repr=False)
    public_key: bytes
    created_at: int
    algorithm: str = DkimAlgorithm.RSA
    status: str = DkimStatus.CURRENT
    # Since when DNS has the record; only for Ed25519 keys, which do not sign before.
    published_at: int | None = None
    # Since when an old key does not sign any more.
    retired_at: int | None = None


async def insert_dkim_keys(tx: store.Transaction, key: DkimKey) -> None:
    row = (key.account_id, key.domain_id, key.selector, key.private_key, key.public_key, key.created_at)
    await tx.execute("dkim_keys.insert", *row, key.algorithm, key.status, key.published_at, key.retired_at)


@queries.rows("dkim_keys.of_domain", DkimKey)
async def dkim_keys(tx: store.Transaction, account_id: str, domain_id: str) -> list[DkimKey]: ...


async def dkim_keys_of_domains(tx: store.Transaction, account_id: str, *, first: str, last: str) -> dict[str, DkimKey]:
    """The RSA keys that sign for an account's domains with ids from `first` to `last`, by the domain's id."""
    rows = await tx.fetch("dkim_keys.of_domains", account_id, first, last)
    keys = [DkimKey(*row) for row in rows]
    return {key.domain_id: key for key in keys}  # the newest key of a domain comes last


async def dkim_key_page(tx: store.Transaction, *, after: tuple[str, str, str], limit: int) -> list[DkimKey]:
    """The keys of all domains that have a private key, after account, domain and selector."""
    return [DkimKey(*row) for row in await tx.fetch("dkim_keys.page", *after, limit)]


async def update_dkim_key(tx: store.Transaction, key: DkimKey) -> None:
    """Store the status, the times and the private key of a key."""
    place = (key.account_id, key.domain_id, key.selector)
    await tx.execute("dkim_keys.update", *place, key.private_key, key.status, key.published_at, key.retired_at)


async def remove_dkim_key(tx: store.Transaction, key: DkimKey) -> None:
    await tx.execute("dkim_keys.remove_one", key.account_id, key.domain_id, key.selector)


# Delete the keys of a domain; returns how many there were.
@queries.changes("dkim_keys.remove")
async def remove_dkim_keys(tx: store.Transaction, account_id: str, domain_id: str) -> int: ...


WarmupKey = tuple[str, str]


async def warmups(tx: store.Transaction, keys: Collection[WarmupKey]) -> Mapping[WarmupKey, warmup.State]:
    """The states of those among these (account, domain) pairs that have sent before."""
    rows = await tx.fetch_many("warmups.find", sorted(keys)) if keys else []
    return {(row[0], row[1]): warmup.State(day=row[2], step=row[3], used=row[4]) for row in rows}


async def put_warmups(tx: store.Transaction, states: Mapping[WarmupKey, warmup.State]) -> None:
    rows = [(*key, state.day, state.step, state.used) for key, state in sorted(states.items())]
    if rows:
        await tx.execute_later("warmups.put", rows)


async def forget_warmups(tx: store.Transaction, key: WarmupKey, *, before_day: int) -> None:
    """Delete a domain whose last day with mail is over."""
    await tx.execute("warmups.forget", *key, before_day)
