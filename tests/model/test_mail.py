"""The words for states, as docs/api.md spells them."""

from postroad.model import mail


def test_the_words_are_those_that_callers_know() -> None:
    assert [*mail.Source] == ["api", "smtp", "test"]
    assert [*mail.MessageStatus] == ["queued", "delivered", "partial", "failed"]
    assert [*mail.RecipientStatus] == [*("queued", "deferred", "delivered", "bounced", "failed", "canceled", "expired")]
    assert [*mail.BillingStatus] == ["reserved", "settled", "released"]
