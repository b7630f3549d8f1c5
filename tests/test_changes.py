"""Which changes concern an installation that is upgraded."""

import itertools

import pytest

from postroad.config import changes

CHANGES = changes.parse("""
["0.3.0".run]
"postroad verify" = "counts are stored in another way"

["0.2.0".removed]
"http.old" = "is http.new now; rename it"
["0.2.0".changed]
"http.new" = "is in seconds now"
["0.2.0".behaviour]
"Mail to private networks" = "is deferred until delivery.allow_private permits it"
""")


def concerning(since: str | None, version: str = "0.3.0", *settings: str) -> list[str]:
    return [change.subject for change in changes.concerning(CHANGES, since=since, version=version, settings=settings)]


@pytest.mark.parametrize(
    "since, subjects",
    [
        ("0.1.0", ["Mail to private networks", "postroad verify"]),
        ("0.2.0.dev90+gabcdef01", ["Mail to private networks", "postroad verify"]),
        ("0.2.0", ["postroad verify"]),
        ("0.10.0", []),
        ("0.3.0", []),
        ("0.3.0.dev7+gabcdef01.dirty", ["postroad verify"]),
        (changes.OLDEST, ["Mail to private networks", "postroad verify"]),
        (None, []),
    ],
)
def test_what_is_newer_than_the_version_that_ran_last_is_listed(since: str | None, subjects: list[str]) -> None:
    assert concerning(since) == subjects


def test_a_build_that_ran_already_asks_for_nothing_again() -> None:
    assert concerning("0.3.0.dev7+gabcdef01", "0.3.0.dev7+gabcdef01") == []
    assert concerning("0.3.0.dev7+gabcdef01", "0.3.0.dev8+gabcdef02") == ["postroad verify"]


def test_versions_are_in_the_order_of_the_packages() -> None:
    versions = ["0.3.0.dev9", "0.3.0.dev10+gabcdef01", "0.3.0a1", "0.3.0b1", "0.3.0rc1.dev2", "0.3.0rc1", "0.3.0rc2"]
    versions += ["0.3.0", "0.3.1.dev1"]
    assert all(changes.age(older) < changes.age(newer) for older, newer in itertools.pairwise(versions))


def test_what_is_about_a_setting_is_listed_only_where_it_is_set() -> None:
    assert concerning("0.1.0", "0.3.0", "http.new")[:1] == ["http.new"]
    assert concerning("0.2.0", "0.3.0", "http.new") == ["postroad verify"]


def test_a_removed_setting_is_listed_as_long_as_it_is_there() -> None:
    for since in ("0.1.0", "0.3.0", None):
        assert "http.old" in concerning(since, "0.3.0", "http.old")


def test_a_change_is_a_sentence() -> None:
    assert [change.sentence for change in CHANGES] == [
        "http.old is http.new now; rename it.",
        "http.new is in seconds now.",
        "Mail to private networks is deferred until delivery.allow_private permits it.",
        "Run 'postroad verify': counts are stored in another way.",
    ]


def test_a_version_that_nobody_could_order_is_refused() -> None:
    with pytest.raises(ValueError, match="'next' is not a version of Postroad"):
        changes.parse('[next.run]\n"postroad verify" = "why"\n')
