"""The records of a sender domain, and what is said of what stands in DNS."""

import hypothesis
import pytest
from hypothesis import strategies

from postroad.model.domains import domain_records
from postroad.model.domains.domain_records import (
    ANSWERS,
    GRACE_PERIOD,
    MINUTE,
    RecordPurpose,
    RecordState,
    VerificationChange,
)
from postroad.model.units.times import DAY, HOUR

KEY = "v=DKIM1; k=rsa; p=" + "MIIBIjANBgkq" * 30
SERVICE = domain_records.Service(host="mail.example.net", spf=("include:spf.example.net",), return_path_domain="")


def service(**changes: object) -> domain_records.Service:
    given = {"host": "", "spf": "", "source_addresses": (), "has_upstreams": False} | changes
    given = {"return_path_domain": ""} | given
    return domain_records.service(**given)  # type: ignore[arg-type]


def records(
    of: domain_records.Service = SERVICE, domain: str = "example.com"
) -> dict[RecordPurpose, domain_records.Record]:
    key = domain_records.Record(RecordPurpose.DKIM, f"pr1._domainkey.{domain}", "TXT", KEY)
    made = domain_records.records(domain, keys=[key], service=of)
    return {record.purpose: record for record in made}


def test_the_operators_own_words_come_first_in_spf() -> None:
    given = service(spf=" include:spf.example.net  ip4:11.1.1.1 ", source_addresses=("11.1.1.2",), host="m.example.net")
    assert given.spf == ("include:spf.example.net", "ip4:11.1.1.1")


def test_spf_names_the_public_addresses_that_mail_comes_from() -> None:
    given = service(source_addresses=("11.1.1.2", "2a00::25", "10.0.0.1", "127.0.0.1", "fe80::1"), host="m.example.net")
    assert given.spf == ("ip4:11.1.1.2", "ip6:2a00::25")


def test_spf_names_the_host_when_it_has_no_public_address_of_its_own() -> None:
    assert service(source_addresses=("10.0.0.1",), host="Mail.Example.NET.").spf == ("a:mail.example.net",)
    assert service(host="mail.example.net").spf == ("a:mail.example.net",)


def test_what_the_service_cannot_know_it_does_not_invent() -> None:
    assert service(host="localhost") == domain_records.Service("", (), "")
    assert service(host="mail.example.net", has_upstreams=True).spf == ()
    assert service(host="mail.example.net", has_upstreams=True, spf="a:relay.example").spf == ("a:relay.example",)
    made = records(service(host="localhost"))
    assert made[RecordPurpose.SPF].value is None
    assert made[RecordPurpose.RETURN_PATH].value is None
    assert "domains.spf" in domain_records.not_configured(made[RecordPurpose.SPF]).detail
    assert "delivery.hostname" in domain_records.not_configured(made[RecordPurpose.RETURN_PATH]).detail


def test_the_records_of_a_return_path_are_for_a_subdomain() -> None:
    made = records()
    assert [(one.name, one.type, one.value) for one in made.values()] == [
        ("pr1._domainkey.example.com", "TXT", KEY),
        ("bounces.example.com", "TXT", "v=spf1 include:spf.example.net ~all"),
        ("bounces.example.com", "MX", "10 mail.example.net"),
        ("_dmarc.example.com", "TXT", "v=DMARC1; p=none; rua=mailto:reports@bounces.example.com"),
    ]
    assert not any(one.managed for one in made.values())


@pytest.mark.parametrize(
    "found, value",
    [
        ("v=DMARC1; p=reject", "v=DMARC1; p=reject; rua=mailto:reports@bounces.example.com"),
        (
            "v=DMARC1;p=none; rua=mailto:a@example.org!10m , mailto:b@c.example ;fo=1;",
            "v=DMARC1;p=none; rua=mailto:a@example.org!10m,mailto:b@c.example,mailto:reports@bounces.example.com;fo=1",
        ),
        (
            "v=DMARC1; rua= ; p=none",
            "v=DMARC1; rua=mailto:reports@bounces.example.com; p=none",
        ),
        (
            "v=DMARC1; p=none; rua=mailto:Reports@bounces.example.com!9k;",
            "v=DMARC1; p=none; rua=mailto:Reports@bounces.example.com!9k;",
        ),
    ],
)
def test_a_record_that_requests_reports_keeps_what_it_says(found: str, value: str) -> None:
    finding = domain_records.Finding(RecordState.OK, "", (found,))
    given = service(host="mail.example.net")
    assert domain_records.recommended_value(records(given)[RecordPurpose.DMARC], finding, given) == value


@pytest.mark.parametrize(
    "return_path_domain, domain, address",
    [
        ("", "example.com", "reports@bounces.example.com"),
        ("bounces.example.net", "example.com", "reports+example.com@bounces.example.net"),
        ("example.com", "example.com", "reports+example.com@example.com"),
        ("bounces.example.net", f"{'a' * 50}.example", ""),
    ],
)
def test_an_address_for_reports_names_its_domain(return_path_domain: str, domain: str, address: str) -> None:
    assert domain_records.report_address(domain, return_path_domain=return_path_domain) == address
    named = domain_records.reported_domain(address.upper(), return_path_domain=return_path_domain)
    assert named == (domain if address else "")


@pytest.mark.parametrize(
    "address",
    [
        "reports@example.com",
        "reports@bounces",
        "reports@",
        "reports+@bounces.example.com",
        "reports+example.net@bounces.example.com",
        "x+example.com@bounces.example.com",
        "reports@bounces.example.com@bounces.example.com",
        "dmarc@bounces.example.com",
    ],
)
def test_other_addresses_are_not_for_reports(address: str) -> None:
    assert domain_records.reported_domain(address, return_path_domain="") == ""
    assert domain_records.reported_domain(address, return_path_domain="bounces.example.net") == ""


def test_what_stands_at_the_operators_return_path_is_the_operators() -> None:
    given = service(host="mail.example.net", return_path_domain="Bounces.example.net")
    made = records(given)
    assert {purpose for purpose, one in made.items() if one.managed} == {RecordPurpose.SPF, RecordPurpose.RETURN_PATH}
    assert made[RecordPurpose.SPF].name == "bounces.example.net"
    # Whoever sends from that domain itself has it in hand.
    assert not any(one.managed for one in records(given, "bounces.example.net").values())


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        KEY + ";",
        KEY.replace("v=DKIM1; ", ""),
        KEY.replace("k=rsa; ", ""),
        KEY.replace("p=MIIB", "p=MI IB\t"),
        KEY + "; t=y; s=email; h=sha1:sha256",
    ],
)
def test_a_key_that_receivers_find_is_fine_however_it_is_written(text: str) -> None:
    assert domain_records.check_dkim(records()[RecordPurpose.DKIM], [text, "something else"]).state is RecordState.OK


@pytest.mark.parametrize(
    "texts, state, reason",
    [
        ([], RecordState.MISSING, "no TXT record"),
        (["hello"], RecordState.WRONG, "is not a DKIM key"),
        ([f'"{KEY}"'], RecordState.WRONG, "quotation marks"),
        ([KEY.replace(";", "\\;")], RecordState.WRONG, "backslashes"),
        (["v=DKIM1; p="], RecordState.WRONG, "revoked"),
        (["v=DKIM1; k=rsa; p=QUJD"], RecordState.WRONG, "a different key"),
        ([KEY[:200], KEY[200:]], RecordState.WRONG, r"cut off after 182 of 360 characters"),
        ([KEY, KEY], RecordState.WRONG, "2 keys"),
        ([KEY.replace("DKIM1", "DKIM2")], RecordState.WRONG, "v=DKIM1"),
        ([KEY.removeprefix("v=DKIM1; ") + "; v=DKIM1"], RecordState.WRONG, "first"),
        ([KEY.replace("k=rsa", "k=ed25519")], RecordState.WRONG, "k="),
        ([KEY + "; h=sha1"], RecordState.WRONG, "sha256"),
        ([KEY + "; s=other"], RecordState.WRONG, "s="),
    ],
)
def test_a_key_that_receivers_do_not_find_is_reported_with_what_to_do(
    texts: list[str], state: RecordState, reason: str
) -> None:
    finding = domain_records.check_dkim(records()[RecordPurpose.DKIM], texts)
    assert finding.state is state
    assert reason in finding.detail


@hypothesis.given(strategies.lists(strategies.text(alphabet='vkphs=;: "\\\\DKIM1rsaMB\x00é', max_size=40), max_size=3))
def test_any_texts_are_checked_and_only_the_key_is_the_key(texts: list[str]) -> None:
    finding = domain_records.check_dkim(records()[RecordPurpose.DKIM], texts)
    assert finding.state in {RecordState.MISSING, RecordState.WRONG}
    assert finding.detail.isprintable()


def test_a_name_with_the_domain_twice_is_reported_with_the_name_to_enter() -> None:
    detail = domain_records.domain_appended_twice(records()[RecordPurpose.DKIM], "example.com").detail
    assert detail == "found at pr1._domainkey.example.com.example.com; enter the name as pr1._domainkey"


@pytest.mark.parametrize(
    "hosts, state, reason",
    [
        ([(10, "mail.example.net")], RecordState.OK, "arrives"),
        ([(5, "mail.example.net"), (5, "b.example"), (20, "c.example")], RecordState.OK, "arrives"),
        (
            [(20, "mail.example.net"), (10, "mx.google.example")],
            RecordState.WRONG,
            "found mx.google.example, which is not this service; replace",
        ),
        ([(0, "")], RecordState.WRONG, "accepts no mail"),
        ([], RecordState.MISSING, "no MX record at bounces.example.com; add it"),
    ],
)
def test_bounces_come_back_when_the_most_preferred_host_is_this_one(
    hosts: list[tuple[int, str]], state: RecordState, reason: str
) -> None:
    finding = domain_records.check_return_path(records()[RecordPurpose.RETURN_PATH], hosts, service=SERVICE)
    assert finding.state is state
    assert reason in finding.detail


@pytest.mark.parametrize(
    "before, state, after",
    [
        ("", RecordState.OK, "bounces.example.com"),
        ("", RecordState.UNKNOWN, ""),
        ("bounces.example.com", RecordState.UNKNOWN, "bounces.example.com"),
        ("old-label.example.com", RecordState.UNKNOWN, ""),
        ("bounces.example.com", RecordState.MISSING, ""),
        ("bounces.example.com", RecordState.WRONG, ""),
    ],
)
def test_envelope_senders_are_in_the_subdomain_while_its_mx_record_exists(
    before: str, state: RecordState, after: str
) -> None:
    record = records()[RecordPurpose.RETURN_PATH]
    assert domain_records.usable_return_path(before, record, domain_records.Finding(state, "")) == after


def test_nothing_is_chosen_for_a_domain_while_the_operator_has_one_for_all() -> None:
    record = records(service(host="mail.example.net", return_path_domain="r.example.net"))[RecordPurpose.RETURN_PATH]
    finding = domain_records.Finding(RecordState.OK, "")
    assert domain_records.usable_return_path("bounces.example.com", record, finding) == ""


def test_a_policy_is_found_or_reported_what_is_wrong_with_it() -> None:
    check = domain_records.check_dmarc
    assert check("_dmarc.a.example", ["v=spf1 -all"]) is None
    fine = check("_dmarc.a.example", ["other", "v=DMARC1; p=reject"])
    assert fine == domain_records.Finding(RecordState.OK, "found p=reject at _dmarc.a.example", ("v=DMARC1; p=reject",))
    broken = check("_dmarc.a.example", ["v=DMARC1; x=\x1b[31m"])
    assert broken is not None
    assert broken.state is RecordState.WRONG
    assert broken.detail == "found v=DMARC1; x=?[31m at _dmarc.a.example: p= is missing"
    double = check("_dmarc.a.example", ["v=DMARC1; p=none"] * 2)
    assert double is not None
    assert "keep one" in double.detail


def test_a_domain_with_an_spf_record_is_advised_to_change_it_and_not_to_add_another() -> None:
    record = records()[RecordPurpose.SPF]
    there = ("v=spf1 mx -all",)
    wrong = domain_records.Finding(RecordState.WRONG, "", there)
    assert domain_records.recommended_value(record, wrong, SERVICE) == "v=spf1 mx include:spf.example.net -all"
    right = domain_records.Finding(RecordState.OK, "", ("v=spf1 include:x.example -all",))
    assert domain_records.recommended_value(record, right, SERVICE) == "v=spf1 include:x.example -all"
    missing = domain_records.Finding(RecordState.MISSING, "")
    assert domain_records.recommended_value(record, missing, SERVICE) == record.value
    other = records()[RecordPurpose.RETURN_PATH]
    assert domain_records.recommended_value(other, wrong, SERVICE) == other.value


def test_what_strangers_wrote_is_quoted_without_control_characters_and_not_at_length() -> None:
    assert domain_records.quoted("a\x00\x1b\nb") == "a???b"
    assert len(domain_records.quoted("x" * 70_000)) == 300 + 1


# When DNS is asked about a domain, and what its word means for the proof.

NOW = 1_800_000_000_000_000
NO = [RecordState.MISSING, RecordState.WRONG]


def change(
    state: RecordState, *, verified: bool = True, by_dns: bool = True, failing_for: int | None = None
) -> VerificationChange:
    failing_since = None if failing_for is None else NOW - failing_for
    return domain_records.verification_change(
        state, verified=verified, by_dns=by_dns, failing_since=failing_since, now=NOW
    )


def next_check(
    *,
    age: int = 0,
    verified: bool = False,
    failing_for: int | None = None,
    check_hours: int = 24,
    random_fraction: float = 0.5,
) -> int:
    at = domain_records.next_check(
        verified=verified,
        failing_since=None if failing_for is None else NOW - failing_for,
        created_at=NOW - age,
        check_hours=check_hours,
        now=NOW,
        random_fraction=random_fraction,
    )
    return at - NOW


def test_the_key_proves_a_domain_also_one_that_has_lost_its_proof() -> None:
    assert change(RecordState.OK, verified=False, by_dns=False) is VerificationChange.VERIFIED
    assert change(RecordState.OK, verified=False, by_dns=False, failing_for=90 * DAY) is VerificationChange.VERIFIED


@pytest.mark.parametrize("state", [*NO, RecordState.UNKNOWN])
def test_without_the_key_nothing_is_proven(state: RecordState) -> None:
    assert change(state, verified=False, by_dns=False) is VerificationChange.NONE


@pytest.mark.parametrize("state", NO)
def test_a_proof_is_lost_only_when_the_key_stays_away(state: RecordState) -> None:
    assert change(state) is VerificationChange.FAILING
    assert change(state, failing_for=GRACE_PERIOD - 1) is VerificationChange.NONE
    assert change(state, failing_for=GRACE_PERIOD) is VerificationChange.LOST


def test_a_key_that_comes_back_in_time_saves_the_proof() -> None:
    assert change(RecordState.OK, failing_for=GRACE_PERIOD + DAY) is VerificationChange.RECOVERED
    assert change(RecordState.OK) is VerificationChange.NONE


def test_silence_of_dns_takes_nothing_away() -> None:
    assert change(RecordState.UNKNOWN) is VerificationChange.NONE
    assert change(RecordState.UNKNOWN, failing_for=GRACE_PERIOD + DAY) is VerificationChange.NONE


@pytest.mark.parametrize("state", ANSWERS)
def test_dns_does_not_overrule_an_operator(state: RecordState) -> None:
    assert change(state, by_dns=False) is VerificationChange.NONE
    assert change(state, by_dns=False, failing_for=GRACE_PERIOD + DAY) is VerificationChange.NONE


@pytest.mark.parametrize(
    "age, delay",
    [
        (0, 5 * MINUTE),
        (HOUR - 1, 5 * MINUTE),
        (HOUR, HOUR),
        (DAY - 1, HOUR),
        (DAY, DAY),
        (30 * DAY - 1, DAY),
        (30 * DAY, 7 * DAY),
        (1000 * DAY, 7 * DAY),
    ],
)
def test_an_unproven_domain_is_asked_less_often_as_it_grows_old(age: int, delay: int) -> None:
    assert next_check(age=age) == delay


def test_a_proven_domain_is_asked_as_often_as_the_operator_says() -> None:
    assert next_check(age=0, verified=True) == DAY
    assert next_check(age=1000 * DAY, verified=True, check_hours=6) == 6 * HOUR


def test_one_that_fails_is_asked_every_hour_but_not_for_ever() -> None:
    assert next_check(age=1000 * DAY, verified=True, failing_for=HOUR) == HOUR
    assert next_check(age=1000 * DAY, failing_for=29 * DAY) == HOUR
    assert next_check(age=1000 * DAY, failing_for=30 * DAY) == 7 * DAY


def test_chance_moves_checks_by_up_to_a_tenth() -> None:
    assert next_check(random_fraction=0.0) == round(4.5 * MINUTE)
    assert next_check(random_fraction=1.0) == round(5.5 * MINUTE)
