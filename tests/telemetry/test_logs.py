"""Lines are JSON, one each, with a time and a level, and without secrets."""

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest
import structlog

from postroad import errors
from postroad.telemetry import logs


@pytest.fixture
def stream() -> Iterator[io.TextIOWrapper]:
    """A stream to log to; the process's configuration is put back afterwards."""
    before = structlog.get_config()
    handlers, level = logging.root.handlers[:], logging.root.level
    with io.TextIOWrapper(io.BytesIO(), encoding="utf-8") as opened:
        yield opened
    structlog.configure(**before)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def lines(stream: io.TextIOWrapper) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written(stream).splitlines()]


def test_a_line_is_json_with_time_level_event_and_facts(stream: io.TextIOWrapper) -> None:
    log = logs.configure(form="json", level="info", stream=stream)
    log.info("request", status=202, route="/emails", account_id=None)
    log.warning("é\n")
    first, second = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("timestamp"))
    assert first == {"level": "info", "event": "request", "status": 202, "route": "/emails", "account_id": None}
    assert second["event"] == "é\n"


def test_lesser_lines_are_left_out(stream: io.TextIOWrapper) -> None:
    log = logs.configure(form="json", level="warning", stream=stream)
    log.debug("a")
    log.info("b")
    log.warning("c")
    log.error("d")
    assert [line["event"] for line in lines(stream)] == ["c", "d"]


def test_facts_of_any_type_are_written(stream: io.TextIOWrapper) -> None:
    log = logs.configure(form="json", level="info", stream=stream)
    log.info("odd", fact=object, number=1.5)
    assert lines(stream)[0]["fact"] == "<class 'object'>"


def test_an_exception_is_one_line_with_its_traceback(stream: io.TextIOWrapper) -> None:
    log = logs.configure(form="json", level="info", stream=stream)
    try:
        int("x")
    except ValueError:
        log.exception("failed", request_id="req_1")
    (line,) = lines(stream)
    assert line["level"] == "error"
    assert line["request_id"] == "req_1"
    assert line["exception"].startswith("Traceback")
    assert "test_logs.py" in line["exception"]
    assert line["exception"].endswith("with base 10: 'x'\n")


SECRETS = [
    "pr_live_4f7dkqZ0aJx",
    "pr_test_4f7dkqZ0aJx",
    "whsec_dGVzdA==",
    "Authorization: Basic dXNlcjpwYXNz",
    "Bearer abc.def",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
    "postgresql://user:hunter2@db/postroad",
    "redis://:hunter2@db/postroad",
]


@pytest.mark.parametrize("text", SECRETS)
def test_credentials_are_struck_out_of_tracebacks(stream: io.TextIOWrapper, text: str) -> None:
    log = logs.configure(form="json", level="info", stream=stream)
    log.error("failed", exc_info=ValueError(f"cannot use '{text}' here"))
    (line,) = lines(stream)
    assert logs.REDACTED in line["exception"]
    assert line["exception"].endswith("' here\n") or "/postroad' here" in line["exception"]
    for secret in ("4f7dkq", "dGVzdA", "dXNlcj", "abc.def", "c2ln", "hunter2"):
        assert secret not in line["exception"]


@pytest.mark.parametrize("part", ["a:", "://a:", "eyJ", "eyJa.", "://a:b ", "Bearer", "://:"])
def test_a_long_text_that_is_almost_a_credential_is_read_once(part: str) -> None:
    # Read anew from each of its characters, it would take minutes.
    text = "://" + part * (256 * 1024 // len(part))
    assert logs.redact(text).replace(logs.REDACTED, "")[:3] in {"://", ""}


def test_an_endless_exception_is_cut(stream: io.TextIOWrapper) -> None:
    log = logs.configure(form="json", level="info", stream=stream)
    log.error("failed", exc_info=ValueError("pr_live_" + "a" * 10_000 + "b" * 10**6))
    assert len(lines(stream)[0]["exception"]) <= logs.TRACEBACK_CHARACTERS


def test_what_libraries_say_takes_the_same_form(stream: io.TextIOWrapper) -> None:
    logs.configure(form="json", level="info", stream=stream)
    logging.getLogger("asyncio").info("not said")
    logging.getLogger("asyncio").error("task failed with %s", "Bearer abc", exc_info=ValueError("whsec_abc"))
    (line,) = lines(stream)
    assert (line["event"], line["logger"], line["level"]) == ("library", "asyncio", "error")
    assert line["message"] == f"task failed with Bearer {logs.REDACTED}"
    assert "whsec_abc" not in line["exception"]


@pytest.mark.parametrize(
    "problem",
    [
        asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
        asyncpg.AdminShutdownError("terminating connection due to administrator command"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_connection_that_the_database_has_ended_is_one_line(stream: io.TextIOWrapper, problem: Exception) -> None:
    logs.configure(form="json", level="info", stream=stream)
    logging.getLogger("asyncio").error("Future exception was never retrieved\nfuture: <...>", exc_info=problem)
    (line,) = lines(stream)
    assert line == {
        "timestamp": line["timestamp"],
        "level": "warning",
        "event": "library",
        "logger": "asyncio",
        "message": "Future exception was never retrieved",
        "error": f"{type(problem).__name__}: {problem}",
    }


def test_people_get_a_form_to_read(stream: io.TextIOWrapper) -> None:
    log = logs.configure(form="console", level="info", stream=stream)
    log.info("request", status=202)
    log.error("failed", exc_info=ValueError("why"))
    text = written(stream)
    assert "request" in text
    assert "status=202" in text
    assert "ValueError: why" in text
    assert "\x1b" not in text
    with pytest.raises(json.JSONDecodeError):
        json.loads(text.splitlines()[0])


def test_stderr_is_where_lines_go(stream: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    logs.configure(form="json", level="info").info("here")
    assert lines(stream)[0]["event"] == "here"


def test_the_cause_of_an_outage_is_for_the_log_without_its_secrets() -> None:
    away = errors.ServiceUnavailable("the store is away")
    assert logs.cause_of(away) is None
    away.__cause__ = OSError("cannot reach postgresql://shop:hunter22@db/postroad")
    cause = logs.cause_of(away)
    assert cause is not None
    assert cause.startswith("OSError: cannot reach")
    assert "hunter22" not in cause
    mistake = errors.InvalidRequest("no")
    mistake.__cause__ = ValueError("x")
    assert logs.cause_of(mistake) is None


def test_a_command_logs_errors_for_people_and_leaves_the_process_as_it_is(
    stream: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, handlers = structlog.get_config(), logging.root.handlers[:]
    monkeypatch.setattr("sys.stderr", stream)
    log = logs.of_command()
    log.warning("not shown")
    log.error("shown", of="a request")
    assert re.fullmatch(r"\S+ \[error +\] shown +of='a request'\n", written(stream))
    assert (structlog.get_config(), logging.root.handlers) == (before, handlers)
