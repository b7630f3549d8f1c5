"""Secrets that are not in the settings themselves: in a file, or printed by a command.

A command is a list of arguments, and no shell reads it. It runs once in a process, before frontends are forked, which
inherit what it printed. Errors name the setting and the program: arguments and output may be secret, and what the
program writes to its standard error may repeat them.
"""

import contextlib
import functools
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from postroad.config.sources import ConfigError

# A secret store on a network answers within seconds; a prompt for a password never does.
COMMAND_SECONDS: Final = 30.0
# Many times the longest key or URL.
MAX_OUTPUT_BYTES: Final = 65_536
# The ways of giving each secret of a section; those of an upstream are in its entry.
WAYS: Final = (
    ("security", ("secret_key", "secret_key_file", "secret_key_command")),
    ("database", ("url", "url_file", "url_command")),
)


def check_one(place: str, given: Mapping[str, object]) -> None:
    """Raise ConfigError if a secret is given in more than one way."""
    chosen = [setting for setting, value in given.items() if value]
    if len(chosen) > 1:
        raise ConfigError(f"{place}: {chosen[0]} and {chosen[1]} are both set; remove one of them")


def forget_overridden(
    tables: Mapping[str, dict[str, Any]], changes: Mapping[str, Any], defaults: Mapping[str, Any]
) -> None:
    """Reset the other ways of giving each secret that a source names, so that it overrides the sources before it."""
    for section, ways in WAYS:
        given = changes.get(section, {})
        if any(way in given for way in ways):
            tables[section].update({way: defaults[section][way] for way in ways})


def read_file(file: str, *, name: str) -> str:
    """The text of a file."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"{name}: {file} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: {file} is not text") from None


@functools.cache
def run_command(arguments: tuple[str, ...], *, name: str) -> str:
    """What a command prints. A failure is not remembered."""
    program = arguments[0]
    try:
        process = subprocess.Popen(  # noqa: S603 - what the operator has named
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # its children end with it
        )
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "an argument contains a NUL character"
        raise ConfigError(f"{name}: {program} cannot be started: {reason}") from None
    is_late = threading.Event()

    def stop() -> None:
        is_late.set()
        _kill(process)

    timer = threading.Timer(COMMAND_SECONDS, stop)
    timer.start()
    try:
        with process:
            output = process.stdout.read(MAX_OUTPUT_BYTES + 1) if process.stdout else b""
            if len(output) > MAX_OUTPUT_BYTES:
                _kill(process)
    finally:
        timer.cancel()
        timer.join()  # a process with threads should not be forked
    if is_late.is_set():
        raise ConfigError(f"{name}: {program} did not finish within {COMMAND_SECONDS:.0f} seconds, and was stopped")
    return _text(output, process.returncode, place=f"{name}: {program}")


def _text(output: bytes, exit_code: int, *, place: str) -> str:
    if len(output) > MAX_OUTPUT_BYTES:
        raise ConfigError(f"{place} printed more than {MAX_OUTPUT_BYTES} bytes, the limit for a secret")
    if exit_code:
        ended = f"ended with exit code {exit_code}" if exit_code > 0 else f"was ended by signal {-exit_code}"
        raise ConfigError(f"{place} {ended}; run it by hand as the user of the service to see why")
    try:
        text = output.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{place} printed something that is not text") from None
    if not text.strip():
        raise ConfigError(f"{place} printed nothing; it must print the secret to standard output")
    return text


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
