"""The differential tool: one checkout answers itself alike, and a difference is seen."""

from tests.differential import __main__ as differential
from tests.differential import comparison, services

SERVICE = services.Service(("127.0.0.1", 1), ("127.0.0.1", 2), {"key:shop": b"pr_live_secret"})


def test_a_checkout_answers_like_itself() -> None:
    assert differential.run(differential.HERE, differential.HERE, seed=1, requests=40) == 0


def test_ids_have_the_name_of_the_conversation_that_made_them() -> None:
    normaliser = comparison.Normaliser(SERVICE)
    first, second = b"em_" + b"1" * 28, b"em_" + b"2" * 28
    assert normaliser.normalise(b"%s %s" % (first, second), 7) == b"em_#7.0 em_#7.1"
    assert normaliser.normalise(second, 8) == b"em_#7.1"


def test_times_and_secrets_do_not_count_as_differences() -> None:
    normaliser = comparison.Normaliser(SERVICE)
    response = b"Date: Thu, 19 Nov 2026 10:00:00 GMT\r\n2026-11-19T10:00:00.123Z pr_live_secret"
    assert normaliser.normalise(response, 1) == b"Date: (time)\r\n(time) (key:shop)"
