"""Structured logs on stderr: JSON for machines, or console lines for people.

Configured once at the top and passed on as a logger. A line is an event with its fields; headers, queries and bodies
are never logged. Tracebacks and messages of libraries, which this service does not control, are searched for
credentials, which are redacted.
"""

import asyncio
import functools
import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final, Literal, Protocol, Self, TextIO

import msgspec

from postroad import errors
from postroad.concurrency import caches
from postroad.model.units import times

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["json", "console"]
Event = MutableMapping[str, Any]

# The end of a traceback has the line that failed; the text of an exception may have any length.
TRACEBACK_CHARACTERS: Final = 16_000
# The error message of the database.
CAUSE_CHARACTERS: Final = 500
CANNOT_SERVE: Final = (errors.ServiceUnavailable, errors.TemporaryFailure)
REDACTED: Final = "[secret]"
# SQLSTATE classes of connections that broke, or that a server ends because it stops.
_CONNECTION_LOST: Final = ("08", "57P0")
# Strangers write the texts, so nothing is tried twice: parts end where they have to, and the first part of a token,
# which may begin anywhere, is bounded.
_SECRETS: Final = re.compile(
    r"""
      pr_(?:live|test)_[0-9A-Za-z_-]++                               # API keys
    | whsec_[0-9A-Za-z_+/=-]++                                       # webhook secrets
    | eyJ[0-9A-Za-z_-]{1,128}+\.[0-9A-Za-z_-]++\.[0-9A-Za-z_-]*+     # JSON web tokens
    | (?<=Basic\ )[0-9A-Za-z+/=_-]++ | (?<=Bearer\ )[^\s'"]++        # values of Authorization headers
    | (?<=://)[^\s/@:]*+:[^\s/@]++(?=@)                              # user and password in a URL
    """,
    re.VERBOSE,
)
_encoder = msgspec.json.Encoder(enc_hook=repr)


class Logger(Protocol):
    """The logger that is passed on: an event with its fields, at a level."""

    def bind(self, **fields: Any) -> Self: ...
    def debug(self, event: str, **fields: Any) -> object: ...
    def info(self, event: str, **fields: Any) -> object: ...
    def warning(self, event: str, **fields: Any) -> object: ...
    def error(self, event: str, **fields: Any) -> object: ...
    def exception(self, event: str, **fields: Any) -> object: ...
    def log(self, level: int, event: str, **fields: Any) -> object: ...


def configure(*, form: Format, level: Level, stream: TextIO | None = None) -> Logger:
    """Configure the standard library's logging for this process; returns the logger to pass on."""
    stream = stream or sys.stderr
    log: Logger
    if form == "json":
        log = _JsonLogger(_Sink(stream), level=logging.getLevelNamesMapping()[level.upper()])
    else:
        structlog = _structlog()
        log = structlog.wrap_logger(
            structlog.PrintLogger(_Sink(stream)),
            processors=_console_processors(structlog, stream),
            wrapper_class=structlog.make_filtering_bound_logger(level),
        ).bind()
    logging.basicConfig(handlers=[_LibraryHandler(log)], level=logging.WARNING, force=True)
    return log


def of_command() -> Logger:
    """The logger of a command: errors on stderr, for people. What else the process logs stays as it is."""
    structlog = _structlog()
    log: Logger = structlog.wrap_logger(
        structlog.PrintLogger(_Sink(sys.stderr)),
        processors=_console_processors(structlog, sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger("error"),
    ).bind()
    return log


def _console_processors(structlog: Any, stream: TextIO) -> list[Any]:  # noqa: ANN401 - a module
    return [_stamp, structlog.dev.ConsoleRenderer(colors=stream.isatty())]


def _structlog() -> Any:  # noqa: ANN401 - a module
    """The library, imported on first use: only console lines need it.

    rich is hidden meanwhile: structlog would import it for tracebacks that we do not use.
    """
    modules: dict[str, Any] = sys.modules
    modules.setdefault("rich", None)
    try:
        import structlog  # noqa: PLC0415
    finally:
        if modules["rich"] is None:
            del modules["rich"]
    return structlog


def redact(text: str) -> str:
    """The text without anything that looks like a credential."""
    return _SECRETS.sub(REDACTED, text)


def cause_of(error: errors.PostroadError) -> str | None:
    """Why the service is unavailable, redacted for the log; None for any other error."""
    cause = error.__cause__
    if not isinstance(error, CANNOT_SERVE) or cause is None:
        return None
    return redact(f"{type(cause).__name__}: {cause}")[:CAUSE_CHARACTERS]


class _Sink:
    """The stream for log lines. Lines that cannot be written, to a full disk or a closed pipe, are dropped.

    Those of a turn of the event loop are written together at its end: a write costs as much as all else of a line.
    """

    def __init__(self, stream: TextIO) -> None:
        # Unbuffered: a buffer that cannot be flushed would raise again when the process exits.
        self._file = getattr(stream.buffer, "raw", stream.buffer)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[bytes] = []

    def write(self, line: str | bytes) -> None:
        octets = line if isinstance(line, bytes) else line.encode(errors="backslashreplace")
        loop = asyncio._get_running_loop()  # noqa: SLF001 - None in a thread, and before and after the loop
        if loop is None:
            self._write(octets)
            return
        if loop is not self._loop or not self._waiting:
            # Lines of another loop, as before a fork, are that one's.
            self._loop, self._waiting = loop, []
            loop.call_soon(self._write_waiting)
        self._waiting.append(octets)

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._write(b"".join(waiting))

    def _write(self, rest: bytes) -> None:
        """Write the lines, or as much of them as possible."""
        try:
            while rest:
                rest = rest[self._file.write(rest) or len(rest) :]
        except OSError:
            return

    def flush(self) -> None:
        """Do nothing; lines are written at the end of the turn."""


class _LibraryHandler(logging.Handler):
    """Forwards log records of libraries to this logger, so that all lines have one format."""

    def __init__(self, log: Logger) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Forward one record. When the database ends a connection, its caller gets the error: a line is enough here."""
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None and str(getattr(problem, "sqlstate", "")).startswith(_CONNECTION_LOST):
            self._log.warning(
                "library",
                logger=record.name,
                message=record.getMessage().partition("\n")[0],
                error=redact(f"{type(problem).__name__}: {problem}")[:CAUSE_CHARACTERS],
            )
            return
        self._log.log(
            record.levelno,
            "library",
            logger=record.name,
            message=redact(record.getMessage()[:TRACEBACK_CHARACTERS]),
            exc_info=record.exc_info,
        )


class _JsonLogger:
    """JSON lines; structlog would double the time of a line."""

    __slots__ = ("_bound", "_level", "_sink")

    def __init__(self, sink: _Sink, *, level: int, bound: Mapping[str, Any] | None = None) -> None:
        self._sink = sink
        self._level = level
        self._bound = bound or {}

    def bind(self, **fields: Any) -> "_JsonLogger":
        return _JsonLogger(self._sink, level=self._level, bound={**self._bound, **fields})

    def debug(self, event: str, **fields: Any) -> None:
        if self._level <= logging.DEBUG:
            self._write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        if self._level <= logging.INFO:
            self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        if self._level <= logging.WARNING:
            self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write("error", event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        self._write("error", event, {"exc_info": True, **fields})

    def log(self, level: int, event: str, **fields: Any) -> None:
        if level >= self._level:
            self._write(logging.getLevelName(level).lower(), event, fields)

    def _write(self, level: str, event: str, fields: Event) -> None:
        line = _stamp(None, level, {**self._bound, **fields, "event": event})
        try:
            octets = _encoder.encode(line)
        except UnicodeEncodeError:  # half a surrogate, which only escapes can show
            octets = json.dumps(line, default=repr).encode()
        self._sink.write(octets + b"\n")


def _stamp(_logger: object, level: str, event: Event) -> Event:
    """The event with its time and level first, and with the text of its exception."""
    second, rest = divmod(time.time_ns(), 1_000_000_000)
    stamped = {"timestamp": f"{_second(second)}.{rest // 1_000_000:03}Z", "level": level, **event}
    if "exc_info" in stamped:
        _describe_exception(stamped)
    return stamped


@functools.lru_cache(maxsize=2)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def _describe_exception(event: Event) -> None:
    given = event.pop("exc_info")
    if given:
        problem = sys.exc_info()[1] if given is True else given[1] if isinstance(given, tuple) else given
        text = "".join(traceback.format_exception(problem)) if problem else ""
        # Redact before the final cut: half a credential would not be recognized.
        event["exception"] = redact(text[-2 * TRACEBACK_CHARACTERS :])[-TRACEBACK_CHARACTERS:]


INTERVAL: Final = 60 * times.SECOND
# An evicted one is only logged again.
MAX_WARNINGS: Final = 1_000


class LimitedWarnings:
    """Logs a warning unless it was logged under the same name within the interval."""

    def __init__(self, log: Logger, clock: Callable[[], int]) -> None:
        self._log = log
        self._clock = clock
        self._logged_at: caches.LruCache[tuple[str, str], int] = caches.LruCache(MAX_WARNINGS)

    def warning(self, event: str, name: str, /, **fields: Any) -> None:
        """Log the event, which is about something of this name."""
        now = self._clock()
        logged_at = self._logged_at.get((event, name))
        if logged_at is None or not logged_at <= now < logged_at + INTERVAL:
            self._logged_at.put((event, name), now)
            self._log.warning(event, **fields)
