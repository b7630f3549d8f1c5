"""The words for states, as docs/api.md spells them."""

from postroad.model.mail import statuses


def test_the_words_are_those_that_callers_know() -> None:
    assert [*statuses.Source] == ["api", "smtp", "test"]
    assert [*statuses.MessageStatus] == ["queued", "delivered", "partial", "failed"]
    assert [*statuses.RecipientStatus] == [
        *("queued", "deferred", "delivered", "bounced", "failed", "canceled", "expired")
    ]
    assert [*statuses.BillingStatus] == ["reserved", "settled", "released"]
