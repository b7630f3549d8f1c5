"""The words for states, as docs/api.md spells them."""

import pytest

from postroad.model.mail import statuses


def test_the_words_are_those_that_callers_know() -> None:
    assert [*statuses.Source] == ["api", "smtp", "test"]
    assert [*statuses.MessageStatus] == ["queued", "delivered", "partial", "failed"]
    assert [*statuses.RecipientStatus] == [
        *("queued", "deferred", "delivered", "bounced", "failed", "canceled", "expired")
    ]
    assert [*statuses.BillingStatus] == ["reserved", "settled", "released"]


# How recipients and messages stand.


Status = statuses.MessageStatus
Billing = statuses.BillingStatus


def test_every_status_of_a_recipient_has_its_billing() -> None:
    assert statuses.BILLING.keys() == set(statuses.RecipientStatus)
    by_billing = {
        billing: {status.value for status, its in statuses.BILLING.items() if its is billing} for billing in Billing
    }
    assert by_billing == {
        Billing.RESERVED: {"queued", "deferred"},
        Billing.SETTLED: {"delivered", "failed"},
        Billing.RELEASED: {"bounced", "canceled", "expired"},
    }


@pytest.mark.parametrize(
    "recipients, delivered, status",
    [
        (1, 1, Status.DELIVERED),
        (1, 0, Status.FAILED),
        (3, 3, Status.DELIVERED),
        (3, 2, Status.PARTIAL),
        (3, 1, Status.PARTIAL),
        (3, 0, Status.FAILED),
    ],
)
def test_a_message_is_delivered_when_all_got_it_and_failed_when_nobody_did(
    recipients: int, delivered: int, status: statuses.MessageStatus
) -> None:
    assert statuses.message_status(recipients=recipients, delivered=delivered) is status


@pytest.mark.parametrize(
    "recipients, released, billing",
    [(1, 0, Billing.SETTLED), (1, 1, Billing.RELEASED), (2, 1, Billing.SETTLED), (2, 2, Billing.RELEASED)],
)
def test_a_message_is_released_only_when_every_credit_was_returned(
    recipients: int, released: int, billing: statuses.BillingStatus
) -> None:
    assert statuses.message_billing(recipients=recipients, released=released) is billing
