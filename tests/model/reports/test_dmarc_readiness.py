"""The verdict on p=reject follows its four conditions, each at its limit."""

from collections.abc import Mapping, Sequence

from postroad.model.reports import dmarc_readiness, dmarc_rows
from postroad.protocol.reports import dmarc_report

TODAY = 20_500
OWN = "192.0.2.10"
ESP = "198.51.100.7"
NONE = dmarc_report.Disposition.NONE
UNKNOWN = "203.0.113.0/24"


def rows(
    source: str,
    count: int,
    *,
    passed: bool,
    days: Sequence[int] = range(TODAY - 20, TODAY + 1),
    reporter: str = "mail.example",
) -> Mapping[dmarc_rows.Key, int]:
    """So many messages of a source on each day."""
    return {
        dmarc_rows.Key(day, "example.com", reporter, source, "example.com", NONE, dkim=passed, spf=False): count
        for day in days
    }


# 21 days with 100 messages each.
GOOD = rows(OWN, 100, passed=True)


def verdict(*more: Mapping[dmarc_rows.Key, int], dismissed: Sequence[str] = ()) -> dmarc_readiness.Verdict:
    everything: dict[dmarc_rows.Key, int] = dict(GOOD)
    for found in more:
        everything.update(found)
    return dmarc_readiness.judge(everything, today=TODAY, own_addresses=[OWN], dismissed=dismissed)


def test_a_domain_whose_mail_passes_for_21_days_can_reject() -> None:
    found = verdict()
    assert found.can_reject
    assert found == dmarc_readiness.Verdict((), days=21, messages=2_100, passed=2_100, sources=())


def test_a_domain_without_reports_waits() -> None:
    found = dmarc_readiness.judge({}, today=TODAY, own_addresses=[OWN])
    assert found.obstacles == ("few_days", "few_messages")


def test_days_count_in_the_last_30() -> None:
    short = rows(OWN, 100, passed=True, days=range(TODAY - 19, TODAY + 1))
    old = rows(OWN, 100, passed=True, days=[TODAY - 30, TODAY + 1])
    first = rows(OWN, 100, passed=True, days=[TODAY - 29])
    judge = dmarc_readiness.judge
    assert judge({**short, **old}, today=TODAY, own_addresses=[OWN]).obstacles == ("few_days",)
    assert judge({**short, **first}, today=TODAY, own_addresses=[OWN]).can_reject


def test_500_messages_pass() -> None:
    most = rows(OWN, 24, passed=True, days=range(TODAY - 19, TODAY + 1))
    for last, obstacles in ((20, ()), (19, ("few_messages",))):
        everything = {**most, **rows(OWN, last, passed=True, days=[TODAY - 20])}
        found = dmarc_readiness.judge(everything, today=TODAY, own_addresses=[OWN])
        assert (found.passed, found.obstacles) == (480 + last, obstacles)


def test_of_our_own_mail_99_of_100_pass() -> None:
    passes, fails = rows(OWN, 99, passed=True), rows("192.0.2.0/24", 1, passed=False)
    assert dmarc_readiness.judge({**passes, **fails}, today=TODAY, own_addresses=[OWN]).can_reject
    one_less = {**passes, **rows(OWN, 98, passed=True, days=[TODAY]), **fails}
    found = dmarc_readiness.judge(one_less, today=TODAY, own_addresses=[OWN], dismissed=["192.0.2.0/24"])
    assert found.obstacles == ("known_source_fails",)
    assert found.sources == (
        dmarc_readiness.Source("192.0.2.0/24", is_own=True, messages=2_099, passed=2_078, days=21),
    )


def test_our_own_source_fails_also_where_it_never_passed_or_sent_little() -> None:
    found = dmarc_readiness.judge(
        {**rows(ESP, 2_000, passed=True), **rows("192.0.2.0/24", 1, passed=False, days=[TODAY])},
        today=TODAY,
        own_addresses=[OWN],
    )
    assert found.obstacles == ("known_source_fails",)
    assert [source.network for source in found.sources] == ["192.0.2.0/24"]


def test_another_known_source_fails_unless_it_is_little_or_dismissed() -> None:
    passes, fails = rows(ESP, 10, passed=True), rows("198.51.100.0/24", 3, passed=False, days=[TODAY])
    found = verdict(passes, fails)
    assert found.obstacles == ("known_source_fails",)
    assert found.sources == (
        dmarc_readiness.Source("198.51.100.0/24", is_own=False, messages=213, passed=210, days=21),
    )
    assert verdict(passes, fails, dismissed=["198.51.100.0/24"]).can_reject
    # One that passed makes a source known. Two failures of 2,103 messages are little, three are not.
    once = rows(ESP, 1, passed=True, days=[TODAY])
    found = verdict(once, rows("198.51.100.0/24", 3, passed=False, days=[TODAY]))
    assert found.obstacles == ("known_source_fails",)
    assert verdict(once, rows("198.51.100.0/24", 2, passed=False, days=[TODAY])).can_reject


def test_an_unknown_source_that_sends_regularly_is_looked_at_first() -> None:
    week = range(TODAY - 6, TODAY + 1)
    found = verdict(rows(UNKNOWN, 1, passed=False, days=week))
    assert found.obstacles == ("unknown_source",)
    assert found.sources == (dmarc_readiness.Source(UNKNOWN, is_own=False, messages=7, passed=0, days=7),)
    assert verdict(rows(UNKNOWN, 1, passed=False, days=week), dismissed=[UNKNOWN]).can_reject
    assert verdict(rows(UNKNOWN, 900, passed=False, days=week[1:])).can_reject
    # 7 of 7,007, and of 7,000.
    for most, can_reject in ((7_000, True), (6_993, False)):
        everything = {**rows(UNKNOWN, 1, passed=False, days=week), **rows(ESP, most - 2_100, passed=True, days=[TODAY])}
        assert verdict(everything).can_reject is can_reject


def test_forged_mail_from_everywhere_is_what_reject_is_for() -> None:
    forged = [rows(f"10.0.{number}.0/24", 50, passed=False, days=[TODAY - number % 20]) for number in range(200)]
    found = verdict(*forged, rows("", 500, passed=False))
    assert found.can_reject
    assert (found.messages, found.passed) == (2_100 + 10_000 + 10_500, 2_100)


def test_no_reporter_makes_what_another_one_reports_small() -> None:
    huge = [rows(source, 10**9, passed=True, reporter="stranger.example") for source in (OWN, ESP, "203.0.113.9")]
    own = rows("192.0.2.0/24", 2, passed=False)
    found = verdict(own, *huge)
    assert found.obstacles == ("known_source_fails",)
    assert found.sources == (
        dmarc_readiness.Source("192.0.2.0/24", is_own=True, messages=2_142, passed=2_100, days=21),
    )
    # Only others say that anything from there passes.
    found = verdict(rows(UNKNOWN, 5, passed=False), *huge)
    assert (found.obstacles, [source.network for source in found.sources]) == (("unknown_source",), [UNKNOWN])


def test_a_small_reporter_is_judged_with_the_others_only() -> None:
    for passed, can_reject in ((498, True), (499, False)):
        small = [
            rows(ESP, passed, passed=True, days=[TODAY], reporter="small.example"),
            rows("198.51.100.0/24", 1, passed=False, days=[TODAY], reporter="small.example"),
        ]
        other = rows(ESP, 1, passed=True, days=[TODAY - 1], reporter="small.example")
        assert verdict(*small).can_reject
        alone = {**rows("198.51.101.5", passed - 1, passed=True, days=[TODAY], reporter="small.example"), **small[1]}
        assert verdict({**alone, **other}).can_reject is can_reject


def test_the_source_with_most_failures_comes_first() -> None:
    found = verdict(rows(UNKNOWN, 5, passed=False), rows("2001:db8::/48", 9, passed=False))
    assert [source.network for source in found.sources] == ["2001:db8::/48", UNKNOWN]
