"""The calls, without any input or output: generators that say what to do and are sent what came of it.

    Exchange --> send a Response or a Failure        Pause --> wait, then go on

They end with a receipt or a message, or with a PostroadError. `Client` and `AsyncClient` carry the steps out, each in
its own way, so that what is tried again, when and with which key is written here and nowhere else.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, Union
from urllib import parse

import postroad_client
from postroad_client import answers, configuration, emails, errors, failures, responses

T = TypeVar("T")

# Before retry n: a random time between half and all of min(MOST, FIRST * 2 ** (n - 1)).
FIRST_BACKOFF_SECONDS: Final = 0.5
MAX_BACKOFF_SECONDS: Final = 8.0
# What an attempt has at least.
MIN_TIMEOUT_SECONDS: Final = 0.001
# Between the polls of a wait.
FIRST_POLL_SECONDS: Final = 1.0
POLL_GROWTH: Final = 1.5
MAX_POLL_SECONDS: Final = 10.0
# With these the server has done nothing.
TOO_MANY_REQUESTS: Final = 429
SERVICE_UNAVAILABLE: Final = "service_unavailable"
MESSAGE_ID: Final = re.compile("[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Request:
    """The same in every attempt. The path is that of the base URL and more."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Exchange:
    """Send the request, and read the response, all within so many seconds."""

    request: Request
    timeout: float


@dataclass(frozen=True)
class Pause:
    """Wait."""

    seconds: float


Call = Generator[Union[Exchange, Pause], Union[responses.Response, failures.Failure], T]


def send(settings: configuration.Settings, email: emails.Email, idempotency_key: str | None) -> Call[answers.Receipt]:
    """POST /emails, under one key."""
    key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
    configuration.check_header("idempotency_key", key)
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    request = _request(settings, "POST", "/emails", headers, emails.encode(email))
    return attempts(settings, request, answers.receipt, idempotency_key=key)


def get(settings: configuration.Settings, message_id: str, *, include_queue: bool = False) -> Call[answers.Message]:
    """GET /emails/{id}."""
    return attempts(settings, _get_request(settings, message_id, include_queue=include_queue), answers.message)


def operation(
    settings: configuration.Settings,
    method: str,
    path: str,
    *names: str,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    member: str | None = None,
    repeatable: bool | None = None,
    idempotency_key: str | None = None,
) -> Call[Any]:
    """Any other operation; its result is one member of the response, or all of it.

    `{}` of the path are the names. A POST may do something twice, so it is repeated only after a response that says
    that nothing was done, unless it is `repeatable` or has a key.
    """
    headers = {} if body is None else {"Content-Type": "application/json"}
    if idempotency_key is not None:
        configuration.check_header("idempotency_key", idempotency_key)
        headers["Idempotency-Key"] = idempotency_key
    request = _request(
        settings,
        method,
        path.format(*map(_segment, names)) + _query(query or {}),
        headers,
        b"" if body is None else emails.encode_members(body),
    )

    def build(members: dict[str, Any]) -> Any:  # noqa: ANN401 - any value of JSON
        if member is not None and member not in members:
            raise ValueError(f"{member!r} is missing")
        return (members or None) if member is None else members[member]

    return attempts(
        settings,
        request,
        build,
        idempotency_key=idempotency_key,
        repeatable=method != "POST" if repeatable is None else repeatable,
        no_content=method == "DELETE",
    )


def wait(
    settings: configuration.Settings,
    message_id: str,
    timeout: float,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Call[answers.Message]:
    """GET /emails/{id} until the message is final."""
    configuration.check_seconds("timeout", timeout)
    return _polls(settings, _get_request(settings, message_id), message_id, timeout, clock)


def _polls(
    settings: configuration.Settings, request: Request, message_id: str, timeout: float, clock: Callable[[], float]
) -> Call[answers.Message]:
    started, pause, is_last = clock(), FIRST_POLL_SECONDS, False
    while True:
        message = yield from attempts(settings, request, answers.message)
        if message.is_final:
            return message
        left = timeout - (clock() - started)
        if is_last or left <= 0:
            error = errors.TimedOutError(
                f"{errors.TIMED_OUT}: {message_id} is not final after {timeout:.3g} s", code=errors.TIMED_OUT
            )
            error.last_message = message
            raise error
        # The last pause ends with the time, and one more poll follows.
        is_last = pause >= left
        yield Pause(min(pause, left))
        pause = min(MAX_POLL_SECONDS, pause * POLL_GROWTH)


def attempts(
    settings: configuration.Settings,
    request: Request,
    build: Callable[[dict[str, Any]], T],
    *,
    idempotency_key: str | None = None,
    repeatable: bool = True,
    no_content: bool = False,
    clock: Callable[[], float] = time.monotonic,
    chance: Callable[[float, float], float] = random.uniform,
) -> Call[T]:
    """Try until there is a result, or an error that is not worth another attempt or has no time left for one."""
    started = clock()
    attempt = 0
    while True:
        attempt += 1
        left = settings.max_elapsed - (clock() - started)
        # Without time for retries, the only attempt has all of its own. A pause may end a little late.
        seconds = min(settings.timeout, max(left, MIN_TIMEOUT_SECONDS)) if settings.max_elapsed else settings.timeout
        outcome = yield Exchange(request, seconds)
        try:
            return responses.read(
                outcome, build, attempts=attempt, idempotency_key=idempotency_key, no_content=no_content
            )
        except errors.PostroadError as error:
            # An exponent has a bound of its own, or 2 ** 2000 would be too much for a float.
            backoff = min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(attempt - 1, 10))
            pause = (error.retry_after or 0.0) + chance(backoff / 2, backoff)
            is_late = clock() - started + pause >= settings.max_elapsed
            is_done_nothing = error.status == TOO_MANY_REQUESTS or error.code == SERVICE_UNAVAILABLE
            if not error.is_retryable or is_late or not (repeatable or is_done_nothing):
                raise
        yield Pause(pause)


def check_id(message_id: str) -> str:
    """Refuse what could lead to another path."""
    if not MESSAGE_ID.fullmatch(message_id):
        raise ValueError("a message id is letters, digits, '_' and '-'")
    return message_id


def _get_request(settings: configuration.Settings, message_id: str, *, include_queue: bool = False) -> Request:
    query = "?include=queue" if include_queue else ""
    return _request(settings, "GET", f"/emails/{check_id(message_id)}{query}", {}, b"")


def _segment(name: str) -> str:
    """A name as one part of a path. "." and ".." are another path to whoever normalizes it."""
    if name in ("", ".", ".."):
        raise ValueError("a name in a path is not empty, and not '.' or '..'")
    return parse.quote(name, safe="")


def _query(parameters: Mapping[str, Any]) -> str:
    given = {name: _written(value) for name, value in parameters.items() if value is not None}
    return f"?{parse.urlencode(given, quote_via=parse.quote)}" if given else ""


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _request(
    settings: configuration.Settings, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> Request:
    common = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Authorization": settings.authorization,
        "User-Agent": f"postroad-python/{postroad_client.__version__}",
    }
    return Request(method, settings.place.path + path, common | dict(headers), body)
