"""`/glossary` has a term for every status that a page shows, and is reached from the menu and by Find."""

import re

from postroad.dashboard.mail import glossary
from postroad.model.bounces import reasons
from postroad.model.mail import statuses
from postroad.services.operations import destinations
from postroad.services.operations.checks import findings
from postroad.storage.mail import delivery_controls, queue_views
from tests.dashboard.browser_client import Browser

SECTIONS = glossary.sections(has_credits=True)
TERMS = {name.strip(" `()") for section in SECTIONS for term, _ in section.terms for name in re.split(r"[,(]", term)}
ACTIONS = {"retry", "resend", "replay", "suppression", "credit", "bounced", "asynchronous bounce"}
OF_WEBHOOKS = {"pending", "succeeded", "failed"}
OF_DOMAINS = {"verified", "failing", "unverified"}
OF_ACCOUNTS = {"suspended", "closed"}


def test_every_status_has_a_term() -> None:
    of_mail = {*statuses.MessageStatus, *statuses.RecipientStatus}
    of_the_queue = {*queue_views.STATES, *destinations.SEVERITY}
    assert {*of_mail, *of_the_queue, *OF_WEBHOOKS, *OF_DOMAINS, *OF_ACCOUNTS, *ACTIONS} <= TERMS


def test_what_a_term_names_is_what_there_is() -> None:
    meanings = {term: meaning for section in SECTIONS for term, meaning in section.terms}
    assert all(fault in meanings["fault"] for fault in reasons.Fault)
    assert all(state in meanings["check"] for state in findings.State)
    assert all(state in meanings["source address, pool"] for state in delivery_controls.SourceStatus)


async def test_it_is_in_the_menu_of_the_user_and_found_by_its_name(browser: Browser, reader: Browser) -> None:
    for who in (browser, reader):
        page = (await who.get("/glossary")).text
        assert "<code>bounces+TOKEN@DOMAIN</code>" in page
        assert '<a href="/glossary" aria-current="page">Glossary</a>' in page
        assert 'href="/glossary"' in (await who.get("/find", q="gloss")).text
