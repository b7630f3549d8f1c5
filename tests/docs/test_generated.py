"""The generated parts of the documentation are what the code says."""

import pytest

import postroad
from postroad.config import changes
from postroad.model.events import events
from postroad.model.people import callers
from tests.docs import generated


@pytest.mark.parametrize("name", generated.PARTS)
def test_a_page_is_what_the_generator_writes(name: str) -> None:
    assert (generated.ROOT / name).read_text() == generated.written(name), "run: make docs-tables"


def test_every_event_and_its_members_are_described() -> None:
    assert ": \n" not in generated.event_types() + generated.event_members()
    assert all(f"### `{kind}`" in generated.event_types() for kind in events.SUBSCRIBABLE)


def test_the_table_of_permissions_says_who_sees_content() -> None:
    (row,) = [line for line in generated.permissions().splitlines() if line.startswith("| See content")]
    assert row.split(" | ")[1:] == ["yes", "yes", "yes", "no", "yes", "no", "no |"]
    assert list(callers.ROLE_TEXTS) == list(callers.Role)


SECTIONS = """# Changelog

## [Unreleased]

## [0.2.0] - 2027-02-01

### Fixed

- A fault.

## [0.1.0] - 2026-11-19

The first release.
"""
UPGRADE = """## [0.2.0] - 2027-02-01

<!-- upgrade: begin; written by make docs-tables -->

### Upgrade

- `http.old` is http.new now; rename it.
- Mail to private networks is deferred.
- Run `postroad verify`: counts are stored in another way.

<!-- upgrade: end -->

### Fixed
"""


def test_the_changelog_begins_each_version_with_what_an_upgrade_asks_of_people() -> None:
    found = changes.parse("""
["0.2.0".removed]
"http.old" = "is http.new now; rename it"
["0.2.0".behaviour]
"Mail to private networks" = "is deferred"
["0.2.0".run]
"postroad verify" = "counts are stored in another way"
""")
    written = generated.changelog(SECTIONS, found)
    assert UPGRADE in written
    assert written.count("An upgrade to this version needs no action.") == 1
    assert written.endswith("## [0.1.0] - 2026-11-19\n\nThe first release.\n")
    assert generated.changelog(written, found) == written
    assert generated.changelog(written, []).count("needs no action.") == 2


def test_the_changelog_is_what_the_generator_writes() -> None:
    text = generated.CHANGELOG.read_text()
    assert text == generated.changelog(text, changes.shipped()), "run: make docs-tables"


def test_every_change_belongs_to_a_release_to_the_next_one_or_to_a_build_before_the_first() -> None:
    text = generated.CHANGELOG.read_text()
    named = {change.version for change in changes.shipped()} - {"0.1.0.dev0", postroad.__version__}
    assert [version for version in named if f"\n## [{version}] - " not in text] == []
    assert {change.kind for change in changes.shipped()} <= {"removed", "changed", "behaviour", "run"}
