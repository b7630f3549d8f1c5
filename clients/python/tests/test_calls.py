"""The steps of a call: what is tried again, when, how often, and with which key."""

import itertools
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from postroad_client import Email, PostroadError, calls, configuration, failures, responses

EMAIL = Email(sender="hello@example.com", to="ada@example.net", subject="Hi", text="Hi")
RECEIPT = responses.Response(202, {}, b'{"id": "em_1", "status": "queued"}')
UNAVAILABLE = responses.Response(503, {}, b'{"error": "later", "code": "service_unavailable"}')
LOST = failures.Failure("connection_failed", "could not connect")


def settings(**options: Any) -> configuration.Settings:
    given = {"username": None, "password": None, "token": "t", "timeout": 30.0, "max_retries": 4, "max_elapsed": 60.0}
    return configuration.Settings.check("http://mail.example.com", **{**given, **options})


def steps(
    call: calls.Call[Any], *outcomes: responses.Response | failures.Failure
) -> list[calls.Exchange | calls.Pause]:
    """The steps of the call, whose exchanges have these outcomes; the last one again and again."""
    last = itertools.chain(outcomes, itertools.repeat(outcomes[-1]))
    taken = []
    try:
        step = next(call)
        while True:
            taken.append(step)
            step = next(call) if isinstance(step, calls.Pause) else call.send(next(last))
    except (StopIteration, PostroadError):
        return taken


def pauses_of(call: calls.Call[Any], *outcomes: responses.Response | failures.Failure) -> list[float]:
    return [step.seconds for step in steps(call, *outcomes) if isinstance(step, calls.Pause)]


def attempts(
    *, clock: Callable[[], float] = lambda: 0.0, chance: Callable[[float, float], float] = max, **options: Any
) -> calls.Call[object]:
    request = calls.Request("GET", "/emails/em_1", {}, b"")
    return calls.attempts(settings(**options), request, lambda members: members, clock=clock, chance=chance)


def test_an_answer_ends_the_call() -> None:
    assert len(steps(attempts(), RECEIPT)) == 1


def test_pauses_double_up_to_a_bound() -> None:
    assert pauses_of(attempts(max_retries=7), LOST) == [0.5, 1, 2, 4, 8, 8, 8]


def test_pauses_are_between_half_and_all_of_that() -> None:
    assert pauses_of(attempts(chance=min), LOST) == [0.25, 0.5, 1, 2]


def test_very_many_retries_are_no_trouble() -> None:
    assert len(pauses_of(attempts(max_retries=2000), LOST)) == 2000


@pytest.mark.parametrize("seconds", [2, 7])
def test_what_the_server_asks_for_comes_on_top(seconds: int) -> None:
    busy = responses.Response(429, {"retry-after": str(seconds)}, b"")
    assert pauses_of(attempts(max_retries=1), busy) == [seconds + 0.5]


def test_without_retries_there_is_one_attempt() -> None:
    assert len(steps(attempts(max_retries=0), LOST)) == 1


def test_a_wait_beyond_the_time_is_not_begun() -> None:
    tomorrow = responses.Response(429, {"retry-after": "86400"}, b"")
    assert len(steps(attempts(), tomorrow)) == 1


def test_a_wait_of_more_digits_than_a_number_has_is_not_begun() -> None:
    never = responses.Response(429, {"retry-after": "9" * 5000}, b"")
    assert len(steps(attempts(), never)) == 1


def test_an_attempt_gets_what_is_left_of_the_time() -> None:
    times = iter([0.0, 0.0, 2.0, 3.0, 9.0])  # the start, and before and after each attempt
    taken = steps(attempts(clock=lambda: next(times), timeout=8, max_elapsed=10), LOST)
    assert [step.timeout for step in taken if isinstance(step, calls.Exchange)] == [8, 7]


@pytest.mark.parametrize("status, code, is_tried_again", [
    (429, "rate_limited", True), (503, "temporary_failure", True), (409, "idempotency_in_progress", True),
    (409, "idempotency_conflict", False), (500, "internal_error", False), (402, "insufficient_credits", False),
])  # fmt: skip
def test_only_what_may_pass_is_tried_again(status: int, code: str, is_tried_again: bool) -> None:  # noqa: FBT001 - a row
    refusal = responses.Response(status, {}, f'{{"code": "{code}"}}'.encode())
    assert len(steps(attempts(max_retries=1), refusal)) == (3 if is_tried_again else 1)


@pytest.mark.parametrize("status, is_tried_again", [(503, True), (429, True), (502, False), (504, False), (500, False)])
def test_a_page_of_a_proxy_goes_by_its_status(status: int, is_tried_again: bool) -> None:  # noqa: FBT001 - a row
    assert len(steps(attempts(max_retries=1), responses.Response(status, {}, b"<html>"))) == (
        3 if is_tried_again else 1
    )


def test_all_attempts_of_a_send_are_the_same_request() -> None:
    exchanges = [
        step.request for step in steps(calls.send(settings(), EMAIL, None), LOST) if isinstance(step, calls.Exchange)
    ]
    assert len(exchanges) == 5
    assert all(request is exchanges[0] for request in exchanges)


def test_each_send_has_a_key_of_its_own() -> None:
    first, second = (next(calls.send(settings(), EMAIL, None)) for _ in range(2))
    assert isinstance(first, calls.Exchange)
    assert isinstance(second, calls.Exchange)
    keys = {step.request.headers["Idempotency-Key"] for step in (first, second)}
    assert len({uuid.UUID(key) for key in keys}) == 2


@pytest.mark.parametrize("key", ["a\r\nX: y", "a\nb", "a\0b", "caf\xe9"])
def test_a_key_that_would_break_the_head_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="idempotency_key"):
        calls.send(settings(), EMAIL, key)


@pytest.mark.parametrize("message_id", ["", "../v1", "em_1/..", "em_1?x", "em 1", "em_1\n", "\xe9m", "%2e%2e"])
def test_an_id_that_leads_elsewhere_is_refused(message_id: str) -> None:
    with pytest.raises(ValueError, match="message id"):
        calls.get(settings(), message_id)


def test_steps_show_no_credential() -> None:
    step = next(calls.send(settings(token="pr_live_secret"), EMAIL, None))
    assert "secret" not in repr(step)
    assert "secret" not in repr(settings(token="pr_live_secret"))
