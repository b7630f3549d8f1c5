"""DMARC records are read as receivers read them, and organizations are found by the tree walk of RFC 9989."""

import contextlib

import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.dns import dmarc_record


@pytest.mark.parametrize(
    "text, policy",
    [
        (dmarc_record.FIRST, "none"),
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


def record(text: str) -> dmarc_record.Record:
    found = dmarc_record.read(["other", f"v=DMARC1; {text}"])
    assert found is not None
    return found


def test_receivers_read_every_tag() -> None:
    assert record("p=reject; sp=none; np=quarantine; adkim=S; aspf=s; psd=Y; t=y") == dmarc_record.Record(
        policy="reject",
        subdomain_policy="none",
        absent_policy="quarantine",
        has_strict_dkim=True,
        has_strict_spf=True,
        is_suffix=True,
        is_test=True,
    )
    assert record("p=quarantine") == dmarc_record.Record(
        policy="quarantine",
        subdomain_policy="quarantine",
        absent_policy="quarantine",
        has_strict_dkim=False,
        has_strict_spf=False,
        is_suffix=None,
        is_test=False,
    )


def test_receivers_take_unknown_values_for_none_that_were_given() -> None:
    found = record("p=reject; sp=x; np=; adkim=x; aspf=r; psd=u; t=n; pct=0")
    assert found == record("p=reject")
    assert record("sp=reject; rua=mailto:a@example").policy == "none"


@pytest.mark.parametrize(
    "texts",
    [[], ["v=spf1 -all"], ["v=DMARC1; p=none"] * 2, ["v=DMARC1"], ["v=DMARC1; p=x"], ["v=DMARC1; p=none; p=none"]],
)
def test_anything_but_one_usable_record_is_none(texts: list[str]) -> None:
    assert dmarc_record.read(texts) is None


def test_the_tree_of_a_domain_ends_at_its_top() -> None:
    assert list(dmarc_record.tree("a.b.example")) == ["a.b.example", "b.example", "example"]
    assert list(dmarc_record.tree("example")) == ["example"]
    assert list(dmarc_record.tree("1.2.3.4.5.6.7.8.9.example")) == [
        "1.2.3.4.5.6.7.8.9.example",
        "4.5.6.7.8.9.example",
        "5.6.7.8.9.example",
        "6.7.8.9.example",
        "7.8.9.example",
        "8.9.example",
        "9.example",
        "example",
    ]


@pytest.mark.parametrize(
    "records, organization",
    [
        ({}, "a.b.example.com"),
        ({"a.b.example.com": "p=none"}, "a.b.example.com"),
        ({"a.b.example.com": "p=none", "example.com": "p=none"}, "example.com"),
        ({"b.example.com": "p=none; psd=n", "example.com": "p=none"}, "b.example.com"),
        ({"com": "p=none; psd=y"}, "example.com"),
        ({"example.com": "p=none; psd=y"}, "b.example.com"),
        ({"b.example.com": "p=none", "com": "p=none; psd=y"}, "example.com"),
        ({"a.b.example.com": "p=none; psd=y"}, "a.b.example.com"),
    ],
)
def test_the_organization_follows_from_the_records(records: dict[str, str], organization: str) -> None:
    found = {place: record(text) for place, text in records.items()}
    assert dmarc_record.organization("a.b.example.com", found) == organization
