"""What an operator reads of a domain."""

from postroad.cli.server import domains
from postroad.model.domains import domain_records

DOMAIN = {"id": "dom_1", "name": "example.com", "verified": False, "verified_by": None, "failing_since": None}
RECORD = {
    "purpose": "spf",
    "name": "example.com",
    "type": "TXT",
    "value": "v=spf1 ~all",
    "required": True,
    "managed": False,
    "state": "wrong",
    "detail": "found a thing; add another",
}


def test_a_domain_says_how_it_stands() -> None:
    assert domains.status(DOMAIN) == "example.com (dom_1): not verified"
    vouched = DOMAIN | {"verified": True, "verified_by": "operator"}
    assert domains.status(vouched) == "example.com (dom_1): verified"
    proven = vouched | {"verified_by": "dns"}
    assert domains.status(proven) == "example.com (dom_1): verified by DNS"
    failing = proven | {"failing_since": "1970-01-01T00:00:00.000Z"}
    assert domains.status(failing) == (
        "example.com (dom_1): verified by DNS (DNS check failing since 1970-01-01T00:00:00.000Z)"
    )
    lost = failing | {"verified": False, "verified_by": None}
    assert "no longer verified (DNS check failing" in domains.status(lost)


def test_warm_up_is_shown_in_recipients_until_it_is_over() -> None:
    def tell(used: int, cap: int | None, tomorrow: int | None) -> str:
        return domains.warmup_text({"used": used, "cap": cap, "tomorrow": tomorrow})

    grows = "The limit grows the day after you use at least half of it."
    assert tell(5, 200, 200) == f"Warm-up: 5 of 200 recipients used today. {grows}"
    assert tell(100, 200, 400).endswith("100 of 200 recipients used today; tomorrow the limit is 400.")
    assert tell(60_000, 100_000, None).endswith("; tomorrow there is no limit.")
    assert tell(5, None, None) == "Warm-up: not required."
    assert domains.warmup_text(None) == "Warm-up: not required."


def test_records_that_are_fine_need_no_line_to_copy_in_a_check() -> None:
    fine = RECORD | {"state": "ok"}
    assert domains.records_text([RECORD], only_incomplete=True).count("\n") == 1
    assert domains.records_text([fine], only_incomplete=True).count("\n") == 0
    assert domains.records_text([fine], only_incomplete=False).count("\n") == 1


def test_what_the_service_does_not_know_has_no_line() -> None:
    unknown = RECORD | {"value": None, "state": "unknown"}
    assert domains.records_text([unknown], only_incomplete=False) == "SPF: unknown. Found a thing; add another."


def test_the_operators_own_records_are_marked() -> None:
    managed = RECORD | {"managed": True}
    assert domains.records_text([managed], only_incomplete=True).startswith("SPF (managed by the operator): wrong. ")


def test_marks_in_a_text_do_not_end_its_string() -> None:
    odd = RECORD | {"value": 'v=spf1 exp=a"b\\c ~all'}
    assert domains.zone_line(odd) == 'example.com. IN TXT ( "v=spf1 exp=a\\"b\\\\c ~all" )'


def test_every_record_has_a_title_and_the_importance_that_the_model_gives_it() -> None:
    assert domains.TITLES.keys() == set(domain_records.RecordPurpose)
    assert set(domains.OLD_KEYS) == domain_records.OLD_KEYS
    assert set(domains.OPTIONAL) | domain_records.OLD_KEYS == domain_records.OPTIONAL
