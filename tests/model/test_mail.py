"""The words for states, as docs/api.md spells them."""

from postroad.model import mail


def test_the_words_are_those_that_callers_know() -> None:
    assert [*mail.Source] == ["api", "smtp", "test"]
    assert [*mail.MessageStatus] == ["queued", "delivered", "partial", "failed"]
    assert [*mail.RecipientStatus] == ["queued", "deferred", "delivered", "bounced", "failed"]
    assert [*mail.BillingStatus] == ["reserved", "settled", "released"]


def test_what_is_not_given_is_empty() -> None:
    request = mail.SendRequest("a@example.com", ("b@example.org",))
    assert (request.cc, request.bcc, request.tags, request.attachments, request.headers) == ((), (), (), (), {})
    assert request.headers is not mail.SendRequest("a@example.com", ()).headers
