"""Causes of failures for people: each has an explanation, one action, and a search that finds its recipients."""

import pytest

from postroad.model.bounces import failure_causes, reasons
from postroad.model.delivery import providers
from postroad.model.mail import statuses

WITHOUT_ATTEMPT = {"suppressed", "expired", "retries_ended", ""}
Action = failure_causes.Action


@pytest.mark.parametrize(
    "cause", [*sorted(WITHOUT_ATTEMPT), *(name for name, one in reasons.REASONS.items() if one.fault)]
)
def test_every_cause_is_explained_and_has_an_action(cause: str) -> None:
    for provider in ("google", "others", "upstream:relay", ""):
        found = failure_causes.describe(cause, provider)
        assert found.label
        assert found.fault
        assert found.explanation.endswith(".")
        assert found.action is not Action.READ_GUIDANCE or provider == "google"


def test_causes_without_an_attempt_are_no_reasons() -> None:
    assert not WITHOUT_ATTEMPT & set(reasons.REASONS)
    status = statuses.RecipientStatus
    assert failure_causes.of_outcome("mailbox_full", status.BOUNCED) == "mailbox_full"
    assert failure_causes.of_outcome(None, status.BOUNCED) == "suppressed"
    assert failure_causes.of_outcome(None, status.EXPIRED) == "expired"
    assert failure_causes.of_outcome(None, status.FAILED) == "retries_ended"


def test_the_action_is_what_helps() -> None:
    actions = {
        ("unknown_address", "google"): Action.SUPPRESS,
        ("not_authenticated", "google"): Action.CHECK_DOMAIN,
        ("low_reputation", "google"): Action.READ_GUIDANCE,
        ("low_reputation", "others"): Action.READ_REPLY,
        ("connection_timed_out", "others"): Action.RESEND,
        ("of_another_version", "google"): Action.READ_REPLY,
    }
    assert {key: failure_causes.describe(*key).action for key in actions} == actions
    assert failure_causes.describe("of_another_version", "google").label == "Of another version"


@pytest.mark.parametrize(
    "cause, label", [("ip_blocked", "IP blocked"), ("no_reverse_dns", "No reverse DNS"), ("tls_failed", "TLS failed")]
)
def test_acronyms_keep_their_capitals(cause: str, label: str) -> None:
    assert failure_causes.describe(cause, "google").label == label


def test_guidance_is_public_and_of_providers_that_we_know() -> None:
    assert set(failure_causes.GUIDANCE) == set(providers.NAMES)
    assert all(url.startswith("https://") and title for url, title in failure_causes.GUIDANCE.values())


def test_a_cause_is_found_by_a_search() -> None:
    terms = {
        "mailbox_full": "outcome:bounced OR outcome:failed cause:mailbox_full",
        "suppressed": "outcome:suppressed",
        "expired": "outcome:expired",
        "retries_ended": "cause:retries_ended",
        "of_another_version": "outcome:bounced OR outcome:failed",
    }
    assert {cause: failure_causes.search_terms(cause) for cause in terms} == terms
    assert [failure_causes.provider_term(name) for name in ("google", "upstream:relay", "")] == [
        "provider:google",
        "provider:upstream:relay",
        "",
    ]
