"""Answers of Postroad and of others: which are results, and what the error says of the rest."""

import copy
import json
import math
import pickle
from collections.abc import Callable

import pytest

from postroad_client import (
    AuthenticationError,
    ConnectionFailedError,
    IdempotencyError,
    InsufficientCreditsError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    PostroadError,
    RateLimitError,
    ServerError,
    TimedOutError,
    UnexpectedResponseError,
    failures,
    responses,
)

NOW = 1445412420.0  # one minute before the dates below


def error_of(status: int, body: object = None, *, attempts: int = 1, **headers: str) -> PostroadError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    with pytest.raises(PostroadError) as caught:
        responses.read(responses.Response(status, given, raw), dict, attempts=attempts, idempotency_key="key-1")
    return caught.value


def test_an_error_carries_what_the_server_said() -> None:
    body = {"error": "the account has 3 credits", "code": "insufficient_credits", "request_id": "req_1"}
    error = error_of(402, body, x_request_id="req_2")
    assert str(error) == error.message == "402 insufficient_credits: the account has 3 credits (req_1)"
    assert (error.status, error.code, error.request_id) == (402, "insufficient_credits", "req_1")
    assert (error.retry_after, error.idempotency_key) == (None, "key-1")
    assert error.is_insufficient_credits
    assert not error.is_retryable
    assert not error.is_idempotency_conflict


def test_a_failure_carries_its_attempts() -> None:
    failure = failures.Failure("connection_failed", "could not connect to 127.0.0.1:9: connection refused")
    with pytest.raises(PostroadError) as caught:
        responses.read(failure, dict, attempts=5)
    assert str(caught.value) == ("connection_failed: could not connect to 127.0.0.1:9: connection refused (5 attempts)")
    assert caught.value.status is None
    assert caught.value.is_retryable


def test_the_header_names_the_request_when_the_body_does_not() -> None:
    assert error_of(503, b"<html>", x_request_id="req_2", attempts=2).message.endswith("(req_2, 2 attempts)")
    assert error_of(409, {"code": "idempotency_conflict", "request_id": 7}, x_request_id="req_2").request_id == "req_2"


def test_a_conflict_is_told_by_its_code() -> None:
    assert error_of(409, {"error": "…", "code": "idempotency_conflict"}).is_idempotency_conflict


@pytest.mark.parametrize("status, body", [
    (502, b"<html>Bad Gateway</html>"), (500, {"detail": "no"}), (400, {"code": 7}), (400, {"code": ""}), (404, []),
    (204, b""), (202, b""), (202, [1]), (202, b"[" * 100_000), (200, b"\x1f\x8b\x08gzip"), (200, b"1" * 5000),
    (304, b""), (101, b""), (200, b"\xff\xfe"),
])  # fmt: skip
def test_what_postroad_does_not_say_is_unexpected(status: int, body: object) -> None:
    error = error_of(status, body)
    assert (error.status, error.code) == (status, "unexpected_response")
    assert error.is_retryable == (status in {500, 502})


def test_a_page_is_quoted_in_part() -> None:
    error = error_of(502, b"<html>\r\n" + b"x" * 5000)
    assert "<html> xxx" in error.message
    assert len(error.message) < 300


def test_what_a_stranger_says_can_be_printed() -> None:
    error = error_of(502, b"\x1b[31m<x>\xff\0", x_request_id="req\udcff\x1b")
    assert error.message == "502 unexpected_response: not a response of Postroad: ?[31m<x>\ufffd? (req??)"
    assert error.request_id == "req??"


def test_a_redirect_says_where_it_leads() -> None:
    error = error_of(308, b"", location="https://elsewhere.example/" + "x" * 5000)
    assert "redirects are not followed" in error.message
    assert "https://elsewhere.example/xxx" in error.message
    assert len(error.message) < 300


def test_an_answer_that_is_too_large_is_unexpected() -> None:
    assert "more than" in error_of(200, b" " * (responses.MAX_BODY_BYTES + 1)).message


@pytest.mark.parametrize("header, seconds", [
    ("0", 0), ("120", 120), ("Wed, 21 Oct 2015 07:28:00 GMT", 60), ("Wednesday, 21-Oct-15 07:28:00 GMT", 60),
    ("Wed Oct 21 07:28:00 2015", 60), ("Wed, 21 Oct 2015 07:26:00 GMT", None), ("-5", None), ("1.5", None),
    ("1e3", None), ("soon", None), ("", None), ("\xb2", None), ("Wed, 99 Oct 2015 07:28:00 GMT", None), (None, None),
    (f"Wed, 21 Oct {9**30} 07:28:00 GMT", None), (f"Wed, 21 Oct 2015 07:28:00 +{9**30}", None), ("9" * 5000, math.inf),
])  # fmt: skip
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert responses.seconds_to_wait(header, now=lambda: NOW) == seconds


@pytest.mark.parametrize("status, code, kind", [
    (400, "invalid_request", InvalidRequestError), (408, "x", InvalidRequestError), (413, "x", InvalidRequestError),
    (415, "x", InvalidRequestError), (422, "x", InvalidRequestError), (401, "unauthorized", AuthenticationError),
    (402, "insufficient_credits", InsufficientCreditsError), (402, "x", InsufficientCreditsError),
    (403, "insufficient_credits", InsufficientCreditsError), (403, "forbidden", PermissionDeniedError),
    (404, "not_found", NotFoundError), (409, "idempotency_conflict", IdempotencyError),
    (409, "conflict", IdempotencyError),
    (429, "rate_limited", RateLimitError), (500, "internal_error", ServerError), (599, "timed_out", ServerError),
])  # fmt: skip
def test_an_error_is_of_the_kind_of_its_status(status: int, code: str, kind: type[PostroadError]) -> None:
    assert type(error_of(status, {"error": "no", "code": code})) is kind


@pytest.mark.parametrize("status, kind", [
    (200, UnexpectedResponseError), (302, UnexpectedResponseError), (101, UnexpectedResponseError),
    (404, NotFoundError), (418, InvalidRequestError), (502, ServerError),
])  # fmt: skip
def test_a_page_is_of_the_kind_of_its_status(status: int, kind: type[PostroadError]) -> None:
    assert type(error_of(status, b"<html>")) is kind


@pytest.mark.parametrize("code, kind", [
    ("connection_failed", ConnectionFailedError), ("timed_out", TimedOutError),
    ("unexpected_response", UnexpectedResponseError),
])  # fmt: skip
def test_a_failure_is_of_the_kind_of_its_code(code: str, kind: type[PostroadError]) -> None:
    with pytest.raises(PostroadError) as caught:
        responses.read(failures.Failure(code, "no"), dict)
    assert type(caught.value) is kind


@pytest.mark.parametrize("clone", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])  # noqa: S301 - our own
def test_an_error_can_go_to_another_process(clone: Callable[[PostroadError], PostroadError]) -> None:
    error = error_of(429, {"error": "slow", "code": "rate_limited"}, retry_after="7")
    assert type(clone(error)) is RateLimitError
    assert vars(clone(error)) == vars(error)
    assert clone(error).is_retryable
