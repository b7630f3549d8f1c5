"""Which TLSA records count for mail, and what is kept of them."""

import hashlib

import pytest

from postroad.model.delivery import tls_policy


@pytest.mark.parametrize("usage", range(5))
@pytest.mark.parametrize("selector", range(3))
def test_only_records_of_a_key_or_of_an_authority_in_the_chain_are_usable(usage: int, selector: int) -> None:
    record = tls_policy.Tlsa(usage, selector, 1, bytes(32))
    assert record.is_usable == (usage in {2, 3} and selector in {0, 1})


@pytest.mark.parametrize("matching_type, octets", [(0, 0), (1, 31), (1, 64), (2, 32), (2, 65), (3, 32)])
def test_data_of_the_wrong_length_is_not_usable(matching_type: int, octets: int) -> None:
    assert not tls_policy.Tlsa(3, 1, matching_type, bytes(octets)).is_usable


@pytest.mark.parametrize("matching_type, octets", [(0, 1), (0, 64), (1, 32), (2, 64)])
def test_short_records_are_kept_as_they_are(matching_type: int, octets: int) -> None:
    record = tls_policy.Tlsa(3, 1, matching_type, bytes(octets))
    assert tls_policy.limited([record]) == (record,)


@pytest.mark.parametrize("octets", [65, 2_000])
def test_of_a_whole_certificate_or_key_its_digest_is_kept(octets: int) -> None:
    digest = hashlib.sha256(b"x" * octets).digest()
    assert tls_policy.limited([tls_policy.Tlsa(2, 0, 0, b"x" * octets)]) == (tls_policy.Tlsa(2, 0, 1, digest),)


@pytest.mark.parametrize("usage, selector, matching_type", [(1, 0, 0), (3, 2, 0), (3, 1, 1), (3, 1, 2), (3, 1, 3)])
def test_an_unusable_record_with_long_data_stays_and_stays_unusable(
    usage: int, selector: int, matching_type: int
) -> None:
    (kept,) = tls_policy.limited([tls_policy.Tlsa(usage, selector, matching_type, bytes(1_000))])
    assert kept == tls_policy.Tlsa(usage, selector, matching_type, b"")
    assert not kept.is_usable


def test_the_first_sixteen_records_are_kept() -> None:
    records = [tls_policy.Tlsa(3, 1, 1, bytes([number]) * 32) for number in range(20)]
    assert tls_policy.limited(records) == tuple(records[:16])
