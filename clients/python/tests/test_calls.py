"""The steps of a call: what is tried again, when, until when, and with which key."""

import itertools
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from postroad_client import Email, PostroadError, calls, configuration, failures, responses

EMAIL = Email(sender="hello@example.com", to="ada@example.net", subject="Hi", text="Hi")
RECEIPT = responses.Response(202, {}, b'{"id": "em_1", "status": "queued"}')
QUEUED = responses.Response(200, {}, b'{"id": "em_1", "status": "queued", "recipients": [{"status": "queued"}]}')
FINAL = responses.Response(200, {}, b'{"id": "em_1", "status": "failed", "recipients": [{"status": "failed"}]}')
LOST = failures.Failure("connection_failed", "could not connect")


class Clock:
    """Time that passes when the call pauses, and `exchange` seconds with each exchange."""

    def __init__(self, exchange: float = 0.0) -> None:
        self.now = 0.0
        self.exchange = exchange

    def __call__(self) -> float:
        return self.now


def settings(**options: Any) -> configuration.Settings:
    given = {"username": None, "password": None, "token": "t", "timeout": 30.0, "max_elapsed": 60.0}
    return configuration.Settings.check("http://mail.example.com", **{**given, **options})


def steps(
    call: calls.Call[Any], clock: Clock, *outcomes: responses.Response | failures.Failure
) -> list[calls.Exchange | calls.Pause]:
    """The steps of the call, whose exchanges have these outcomes; the last one again and again."""
    last = itertools.chain(outcomes, itertools.repeat(outcomes[-1]))
    taken = []
    try:
        step = next(call)
        while True:
            taken.append(step)
            clock.now += step.seconds if isinstance(step, calls.Pause) else clock.exchange
            step = next(call) if isinstance(step, calls.Pause) else call.send(next(last))
    except (StopIteration, PostroadError):
        return taken


def attempted(
    *outcomes: responses.Response | failures.Failure,
    chance: Callable[[float, float], float] = max,
    exchange: float = 0.0,
    **options: Any,
) -> list[calls.Exchange | calls.Pause]:
    clock = Clock(exchange)
    request = calls.Request("GET", "/emails/em_1", {}, b"")
    return steps(
        calls.attempts(settings(**options), request, lambda members: members, clock=clock, chance=chance),
        clock,
        *outcomes,
    )


def pauses_of(taken: list[calls.Exchange | calls.Pause]) -> list[float]:
    return [step.seconds for step in taken if isinstance(step, calls.Pause)]


def timeouts_of(taken: list[calls.Exchange | calls.Pause]) -> list[float]:
    return [step.timeout for step in taken if isinstance(step, calls.Exchange)]


def test_a_result_ends_the_call() -> None:
    assert len(attempted(RECEIPT)) == 1


def test_pauses_double_up_to_a_bound_until_the_time_is_over() -> None:
    assert pauses_of(attempted(LOST)) == [0.5, 1, 2, 4, 8, 8, 8, 8, 8, 8]


def test_pauses_are_between_half_and_all_of_that() -> None:
    assert pauses_of(attempted(LOST, chance=min, max_elapsed=12)) == [0.25, 0.5, 1, 2, 4, 4]


def test_very_many_retries_are_no_trouble() -> None:
    assert len(pauses_of(attempted(LOST, max_elapsed=16_000))) == 2003


@pytest.mark.parametrize("seconds", [2, 7])
def test_what_the_server_asks_for_comes_on_top(seconds: int) -> None:
    busy = responses.Response(429, {"retry-after": str(seconds)}, b"")
    assert pauses_of(attempted(busy, RECEIPT)) == [seconds + 0.5]


def test_without_time_for_retries_there_is_one_attempt_which_has_its_own() -> None:
    assert timeouts_of(attempted(LOST, max_elapsed=0)) == [30]


def test_a_wait_beyond_the_time_is_not_begun() -> None:
    tomorrow = responses.Response(429, {"retry-after": "86400"}, b"")
    assert len(attempted(tomorrow)) == 1
    assert len(attempted(LOST, max_elapsed=0.5)) == 1


def test_a_wait_of_more_digits_than_a_number_has_is_not_begun() -> None:
    never = responses.Response(429, {"retry-after": "9" * 5000}, b"")
    assert len(attempted(never)) == 1


def test_an_attempt_gets_what_is_left_of_the_time() -> None:
    assert timeouts_of(attempted(LOST, exchange=2.5, timeout=8, max_elapsed=10)) == [8, 7, 3.5]


@pytest.mark.parametrize("status, code, is_tried_again", [
    (429, "rate_limited", True), (503, "temporary_failure", True), (409, "idempotency_in_progress", True),
    (500, "internal_error", True), (408, "x", True), (502, "x", True), (504, "x", True),
    (409, "idempotency_conflict", False), (402, "insufficient_credits", False), (501, "x", False), (505, "x", False),
])  # fmt: skip
def test_only_what_may_pass_is_tried_again(status: int, code: str, is_tried_again: bool) -> None:  # noqa: FBT001 - a row
    refusal = responses.Response(status, {}, f'{{"code": "{code}"}}'.encode())
    assert len(attempted(refusal, RECEIPT)) == (3 if is_tried_again else 1)


@pytest.mark.parametrize("status, is_tried_again", [
    (503, True), (429, True), (502, True), (504, True), (500, True), (408, True), (501, False), (404, False),
])  # fmt: skip
def test_a_page_of_a_proxy_goes_by_its_status(status: int, is_tried_again: bool) -> None:  # noqa: FBT001 - a row
    assert len(attempted(responses.Response(status, {}, b"<html>"), RECEIPT)) == (3 if is_tried_again else 1)


def test_polls_are_further_and_further_apart_and_the_last_ends_with_the_time() -> None:
    clock = Clock()
    taken = steps(calls.wait(settings(), "em_1", 41, clock=clock), clock, QUEUED)
    assert pauses_of(taken) == [1, 1.5, 2.25, 3.375, 5.0625, 7.59375, 10, 10, 0.21875]
    assert len(timeouts_of(taken)) == 10


def test_a_wait_without_time_asks_once() -> None:
    clock = Clock()
    assert len(steps(calls.wait(settings(), "em_1", 0, clock=clock), clock, QUEUED)) == 1


def test_a_wait_for_a_final_message_asks_once() -> None:
    clock = Clock()
    assert len(steps(calls.wait(settings(), "em_1", 300, clock=clock), clock, FINAL)) == 1


def test_all_attempts_of_a_send_are_the_same_request() -> None:
    sent = steps(calls.send(settings(), EMAIL, None), Clock(), LOST, LOST, LOST, LOST, RECEIPT)
    exchanges = [step.request for step in sent if isinstance(step, calls.Exchange)]
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
    with pytest.raises(ValueError, match="message id"):
        calls.wait(settings(), message_id, 300)


def test_steps_show_no_credential() -> None:
    step = next(calls.send(settings(token="pr_live_secret"), EMAIL, None))
    assert "secret" not in repr(step)
    assert "secret" not in repr(settings(token="pr_live_secret"))
