"""What an operator reads of a domain."""

import dataclasses

from postroad.cli.server import domains as domain_texts
from postroad.model.domains import domain_records, warmup
from postroad.model.domains.domain_records import RecordPurpose, RecordState
from postroad.services.domains import dns_checks as domain_checks
from postroad.storage.mail import domains

DOMAIN = domains.Domain("dom_1", "acc_1", "example.com", None, 0)
RECORD = domain_records.Record(RecordPurpose.SPF, "example.com", "TXT", "v=spf1 ~all")
SHOWN = domain_checks.RecordStatus(RECORD, RECORD.value, RecordState.WRONG, "found a thing; add another", 0)


def test_a_domain_says_how_it_stands() -> None:
    status = domain_texts.status
    assert status(DOMAIN) == "example.com (dom_1): not verified"
    vouched = dataclasses.replace(DOMAIN, verified_at=1, verified_by="operator")
    assert status(vouched) == "example.com (dom_1): verified"
    proven = dataclasses.replace(DOMAIN, verified_at=1, verified_by="dns")
    assert status(proven) == "example.com (dom_1): verified by DNS"
    failing = dataclasses.replace(proven, failing_since=0)
    assert status(failing) == (
        "example.com (dom_1): verified by DNS (DNS check failing since 1970-01-01T00:00:00.000Z)"
    )
    lost = dataclasses.replace(failing, verified_at=None, verified_by=None)
    assert "no longer verified (DNS check failing" in status(lost)


def test_warm_up_is_shown_in_recipients_until_it_is_over() -> None:
    tell = domain_texts.warmup_text
    grows = "The limit grows the day after you use at least half of it."
    assert tell(warmup.View(5, 200, 200, 0)) == f"Warm-up: 5 of 200 recipients used today. {grows}"
    assert tell(warmup.View(100, 200, 400, 0)).endswith("100 of 200 recipients used today; tomorrow the limit is 400.")
    assert tell(warmup.View(60_000, 100_000, None, 0)).endswith("; tomorrow there is no limit.")
    assert tell(warmup.View(5, None, None, 0)) == "Warm-up: not required."
    assert tell(None) == "Warm-up: not required."


def test_records_that_are_fine_need_no_line_to_copy_in_a_check() -> None:
    fine = dataclasses.replace(SHOWN, state=RecordState.OK)
    assert domain_texts.records_text([SHOWN], only_incomplete=True).count("\n") == 1
    assert domain_texts.records_text([fine], only_incomplete=True).count("\n") == 0
    assert domain_texts.records_text([fine], only_incomplete=False).count("\n") == 1


def test_what_the_service_does_not_know_has_no_line() -> None:
    unknown = dataclasses.replace(SHOWN, value=None, state=RecordState.UNKNOWN)
    assert domain_texts.records_text([unknown], only_incomplete=False) == "SPF: unknown. Found a thing; add another."


def test_the_operators_own_records_are_marked() -> None:
    managed = dataclasses.replace(SHOWN, record=dataclasses.replace(RECORD, managed=True))
    assert domain_texts.records_text([managed], only_incomplete=True).startswith(
        "SPF (managed by the operator): wrong. "
    )


def test_marks_in_a_text_do_not_end_its_string() -> None:
    odd = dataclasses.replace(SHOWN, value='v=spf1 exp=a"b\\c ~all')
    assert domain_texts.zone_line(odd) == 'example.com. IN TXT ( "v=spf1 exp=a\\"b\\\\c ~all" )'
