"""DMARC records are read as receivers read them, and organizations are found by the tree walk of RFC 9989."""

import contextlib

import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.dns import dmarc_record


@pytest.mark.parametrize(
    "text, policy",
    [
        (dmarc_record.first("example.com"), "none"),
        ("v=DMARC1; p=reject; np=reject; psd=n; t=y; pct=20", "reject"),
        ("v=DMARC1;p=reject", "reject"),
        ("v=DMARC1; p=Quarantine; rua=mailto:a@example.org; pct=50;", "quarantine"),
        ("v = DMARC1 ; sp=none ; p=none", "none"),
    ],
)
def test_a_policy_is_read(text: str, policy: str) -> None:
    assert dmarc_record.is_dmarc(text)
    assert dmarc_record.policy_of(text) == policy


@pytest.mark.parametrize(
    "text, reason",
    [
        ("v=DMARC1", "p= is missing"),
        ("v=DMARC1; rua=mailto:a@example.org", "p= is missing"),
        ("v=DMARC1; p=yes", "must be none, quarantine or reject"),
        ("v=DMARC1; p=none; p=reject", "not a list"),
        ("v=DMARC1; nonsense", "not a list"),
        ("p=none; v=DMARC1", "first"),
    ],
)
def test_a_record_that_receivers_ignore_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(dmarc_record.DmarcError, match=reason):
        dmarc_record.policy_of(text)


@pytest.mark.parametrize("text", ["", "v=DMARC2; p=none", "v=spf1 ~all", "p=none", "v=DMARC12", "V=DMARC1; p=none"])
def test_other_texts_are_not_meant_to_be_policies(text: str) -> None:
    assert not dmarc_record.is_dmarc(text)


def test_a_policy_is_looked_for_at_the_domain_and_above_it() -> None:
    assert list(dmarc_record.names("example.com")) == ["_dmarc.example.com"]
    assert list(dmarc_record.names("a.b.example.com")) == [
        "_dmarc.a.b.example.com",
        "_dmarc.b.example.com",
        "_dmarc.example.com",
    ]


def test_a_name_of_many_labels_costs_few_questions_and_the_top_is_among_them() -> None:
    domain = ".".join(["x"] * 100 + ["example", "com"])
    names = list(dmarc_record.names(domain))
    assert len(names) == 7
    assert (names[0], names[-1]) == (f"_dmarc.{domain}", "_dmarc.example.com")


@hypothesis.given(strategies.text(alphabet="v=DMARC1; pnoe\x00", max_size=40).map(lambda rest: f"v=DMARC1;{rest}"))
def test_any_text_is_a_policy_or_refused(text: str) -> None:
    with contextlib.suppress(dmarc_record.DmarcError):
        assert dmarc_record.policy_of(text) in dmarc_record.POLICIES
