"""Which TLSA records count for mail."""

import pytest

from postroad.model import tls_policy


@pytest.mark.parametrize("usage", range(5))
@pytest.mark.parametrize("selector", range(3))
def test_only_records_of_a_key_or_of_an_authority_in_the_chain_are_usable(usage: int, selector: int) -> None:
    record = tls_policy.Tlsa(usage, selector, 1, bytes(32))
    assert record.is_usable == (usage in {2, 3} and selector in {0, 1})


@pytest.mark.parametrize("matching_type, octets", [(0, 0), (1, 31), (1, 64), (2, 32), (2, 65), (3, 32)])
def test_data_of_the_wrong_length_is_not_usable(matching_type: int, octets: int) -> None:
    assert not tls_policy.Tlsa(3, 1, matching_type, bytes(octets)).is_usable
