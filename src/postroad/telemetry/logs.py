"""Log lines: JSON on stderr for machines, or readable ones for people.

Configured once, at the top, and passed on as a logger. A line is an event and its facts: no header, query or body is
ever given to it. As a second wall, whatever looks like a credential is struck out of tracebacks and of what libraries
say through the standard library's logging, because those words are not ours.
"""

import functools
import logging
import re
import sys
import time
import traceback
from collections.abc import MutableMapping
from typing import Any, Final, Literal, TextIO

import msgspec
import structlog

from postroad import errors

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["json", "console"]
Logger = structlog.typing.FilteringBoundLogger
Event = MutableMapping[str, Any]

# A traceback is for finding the line, and its end says it; an exception's own text may be of any length.
TRACEBACK_CHARACTERS: Final = 16_000
# A database's own words about what is wrong with it.
CAUSE_CHARACTERS: Final = 500
CANNOT_SERVE: Final = (errors.ServiceUnavailable, errors.TemporaryFailure)
REDACTED: Final = "[secret]"
_SECRETS: Final = re.compile(
    r"""
      pr_live_[0-9A-Za-z_-]+                                   # API keys
    | whsec_[0-9A-Za-z_+/=-]+                                  # webhook secrets
    | eyJ[0-9A-Za-z_-]+\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]*        # JSON web tokens
    | (?<=Basic\ )[0-9A-Za-z+/=_-]+ | (?<=Bearer\ )[^\s'"]+    # what follows in an Authorization header
    | (?<=://)[^\s/@]+:[^\s/@]+(?=@)                           # user and password of an address
    """,
    re.VERBOSE,
)
_encoder = msgspec.json.Encoder(enc_hook=repr)


def configure(*, form: Format, level: Level, stream: TextIO | None = None) -> Logger:
    """Configure structlog and the standard library's logging for this process, and give the logger to pass on."""
    stream = stream or sys.stderr
    sink: Any = _Sink(stream)
    factory: Any
    if form == "json":
        processors: list[Any] = [_json_line]
        factory = structlog.BytesLoggerFactory(sink)
    else:
        processors = [_stamp, structlog.dev.ConsoleRenderer(colors=stream.isatty())]
        factory = structlog.PrintLoggerFactory(sink)
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )
    log: Logger = structlog.get_logger().bind()
    logging.basicConfig(handlers=[_LibraryHandler(log)], level=logging.WARNING, force=True)
    return log


def redact(text: str) -> str:
    """The text without whatever looks like a credential."""
    return _SECRETS.sub(REDACTED, text)


def cause_of(error: errors.PostroadError) -> str | None:
    """What is wrong with the service when it cannot serve, in words that are safe to log; None when nothing is."""
    cause = error.__cause__
    if not isinstance(error, CANNOT_SERVE) or cause is None:
        return None
    return redact(f"{type(cause).__name__}: {cause}")[:CAUSE_CHARACTERS]


class _Sink:
    """Where lines go. One that cannot be written, to a full disk or to a pipe without a reader, must stop nothing."""

    def __init__(self, stream: TextIO) -> None:
        # Below the buffer: what it could not get rid of would come up again, and fail the process when it ends.
        self._file = getattr(stream.buffer, "raw", stream.buffer)

    def write(self, line: str | bytes) -> None:
        """Write all of a line, or as much as can be written."""
        rest = line if isinstance(line, bytes) else line.encode(errors="backslashreplace")
        try:
            while rest:
                rest = rest[self._file.write(rest) or len(rest) :]
        except OSError:
            return

    def flush(self) -> None:
        """Nothing is held back."""


class _LibraryHandler(logging.Handler):
    """Hands what libraries log to our own logger, so that stderr holds lines of one form."""

    def __init__(self, log: Logger) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """One record of a library."""
        self._log.log(
            record.levelno,
            "library",
            logger=record.name,
            message=redact(record.getMessage()[:TRACEBACK_CHARACTERS]),
            exc_info=record.exc_info,
        )


def _json_line(logger: object, level: str, event: Event) -> bytes:
    return _encoder.encode(_stamp(logger, level, event))


def _stamp(_logger: object, level: str, event: Event) -> Event:
    """The event with its time and level before everything else, and with the words of an exception."""
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
        # Struck out before it is cut for good: half a credential would not be recognised.
        event["exception"] = redact(text[-2 * TRACEBACK_CHARACTERS :])[-TRACEBACK_CHARACTERS:]
