"""Starters: each renders with its values, is whole in HTML and text, and passes the checks of content."""

from email import message
from importlib import resources

import pytest

from postroad import errors
from postroad.protocol.text import mustache, sample_values
from postroad.services.messages import content_checks, previews
from postroad.services.templates import starters, templates

# What more than ten of the tested mail clients ignore, and the starters look right without: the colours of the dark,
# the ground around the card, and what screen readers are told of tables.
IGNORED = {"@media (prefers-color-scheme)", "color-scheme meta tag", "<body> element", "role attribute"}


def rendered(name: str) -> tuple[starters.Starter, previews.Preview]:
    starter = starters.find(name)
    content = starters.content(starter)
    shown = templates.render_draft(
        subject=content.subject, text=content.text, html=content.html, variables=starter.values
    )
    mail = message.EmailMessage()
    mail["From"], mail["Date"], mail["Message-ID"] = "hello@shop.example", "Thu, 1 Jan 2026 00:00:00 +0000", "<1@x>"
    mail["Subject"] = shown.subject
    mail.set_content(shown.text or "")
    mail.add_alternative(shown.html or "", subtype="html")
    return starter, previews.of_bytes(mail.as_bytes())


def test_every_file_is_a_starter() -> None:
    files = resources.files("postroad.services.templates").joinpath("starters").iterdir()
    assert {file.name for file in files} == {*(f"{name}.toml" for name in starters.NAMES), "layout.html"}
    assert len({starters.find(name).title for name in starters.NAMES}) == len(starters.NAMES)
    with pytest.raises(errors.NotFound):
        starters.find("../starters/blank")


@pytest.mark.parametrize("name", starters.NAMES)
def test_a_starter_passes_all_checks_with_its_values(name: str) -> None:
    _, preview = rendered(name)
    report = content_checks.check(preview, content_checks.Origin("shop.example", "shop.example"))
    assert [finding.text for finding in report.content if finding.level is not content_checks.Level.GOOD] == []
    assert [checked for checked in report.links if checked.problems] == []
    assert report.more_links == 0
    assert {feature.title for feature in report.features if len(feature.not_supported) > 10} <= IGNORED
    assert len(preview.html or "") < 8_000


@pytest.mark.parametrize("name", starters.NAMES)
def test_a_starter_says_the_same_in_text_and_needs_no_other_values(name: str) -> None:
    starter, preview = rendered(name)
    content = starters.content(starter)
    parsed = [mustache.parse(source or "") for source in (content.subject, content.text, content.html)]
    assert sample_values.sample(parsed, today="", year="").keys() == starter.values.keys()
    in_html = sample_values.sample(parsed[2:], today="", year="").keys()
    in_text = sample_values.sample(parsed[:2], today="", year="").keys()
    # The footer has more: who sends it.
    assert in_html - in_text <= {"company", "company_address", "vat_number"}
    assert in_text <= in_html
    assert "{{" not in f"{preview.text}{preview.html}"
