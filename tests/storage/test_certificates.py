"""Certificates in the store: one process at a time orders them, and a claim ends by itself."""

import pytest

from postroad.storage.engine.store import Store, Transaction
from postroad.storage.operations import certificates

KEY = certificates.Key("https://ca.example/dir", "mail.example.com,mx.example.com")


def test_the_key_of_names_does_not_depend_on_their_order_and_case() -> None:
    assert certificates.key_of("https://ca.example/dir", ["mx.example.com", "Mail.example.com"]) == KEY


async def claimed(store: Store, *, now: int, due_by: int | None = None) -> int | None:
    """The number of the attempt, if the claim succeeds."""
    async with store.transaction() as tx:
        row = await certificates.claim(tx, KEY, due_by=now if due_by is None else due_by, now=now, until=now + 10)
    return None if row is None else row.attempt_count


async def test_a_certificate_is_claimed_by_one_until_the_claim_ends(store: Store) -> None:
    assert await claimed(store, now=100) == 1
    assert await claimed(store, now=109) is None
    assert await claimed(store, now=109, due_by=2**62) is None
    assert await claimed(store, now=110) == 2


async def test_a_failed_order_is_due_later_and_keeps_the_old_certificate(store: Store) -> None:
    await claimed(store, now=100)
    async with store.transaction() as tx:
        await certificates.put(tx, KEY, chain="chain", private_key=b"key", issued_at=100, expires_at=400, due_at=300)
    assert await claimed(store, now=299) is None
    assert await claimed(store, now=300) == 1
    async with store.transaction() as tx:
        await certificates.postpone(tx, KEY, due_at=350, error="refused")
        found = await certificates.find(tx, KEY)
    assert found == certificates.StoredCertificate(*KEY, "chain", b"key", 100, 400, 350, 0, 1, "refused")
    assert await claimed(store, now=349) is None
    assert await claimed(store, now=349, due_by=2**62) == 2


async def test_the_first_account_of_a_directory_stays(tx: Transaction) -> None:
    first = certificates.AcmeAccount("https://ca.example/dir", b"one", "https://ca.example/1")
    await certificates.put_account(tx, first)
    await certificates.put_account(
        tx, certificates.AcmeAccount("https://ca.example/dir", b"two", "https://ca.example/2")
    )
    assert await certificates.acme_account(tx, "https://ca.example/dir") == first
    assert await certificates.acme_account(tx, "https://other.example/dir") is None


@pytest.mark.parametrize("kind", ["http-01", "tls-alpn-01"])
async def test_challenges_are_there_until_their_order_ends_or_they_expire(tx: Transaction, kind: str) -> None:
    one, two = (
        certificates.StoredChallenge(f"token-{number}", "mail.example.com", kind, "proof", 200) for number in (1, 2)
    )
    await certificates.put_challenges(tx, [one, two])
    assert await certificates.challenges(tx, kind, now=199) == [one, two]
    assert await certificates.challenge(tx, "token-1", now=199) == one
    assert await certificates.challenge(tx, "token-1", now=200) is None
    await certificates.remove_challenges(tx, ["token-1"], now=100)
    assert await certificates.challenges(tx, kind, now=0) == [two]
    await certificates.remove_challenges(tx, [], now=200)
    assert await certificates.challenges(tx, kind, now=0) == []
