"""The sources of settings, each overriding the one before: a file, the environment, flags.

Values are untyped tables here. An unknown section or key is an error that names its source.
"""

import contextlib
import functools
import os
import re
import signal
import stat
import subprocess
import threading
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from postroad.config import former_names

PREFIX: Final = "POSTROAD_"
ENVIRONMENT: Final = "environment"
ROOT: Final = 0
_COMMAND: Final = "_command"
# What `tomllib` says.
_TWICE: Final = re.compile(r"Cannot declare \((?P<names>.+)\) twice \(at line (?P<line>\d+)")


class ConfigError(ValueError):
    """A setting is unknown, of the wrong type or invalid."""


def read(file: Path) -> dict[str, Any]:
    """The tables of a file."""
    try:
        with file.open("rb") as opened:
            tables, state = tomllib.load(opened), os.fstat(opened.fileno())
    except PermissionError:
        raise ConfigError(
            f"{file}: cannot be read by this user. "
            f"Run the command as the user of the service: sudo -u {_owner(file)} postroad …"
        ) from None
    except OSError as problem:
        raise ConfigError(f"{file}: cannot be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{file}: {_reason(problem)}") from None
    if os.geteuid() == ROOT:
        _refuse_commands(file, tables, state)
    return tables


def _refuse_commands(file: Path, tables: Mapping[str, Any], state: os.stat_result) -> None:
    """Raise ConfigError if root would run what another user wrote: the user of the service must not become root."""
    name = next(_commands(tables), None)
    if name is None:
        return
    if state.st_uid != ROOT:
        who = _owner(file)
        advice = f"Run the command as the user of the service: runuser -u {who} -- postroad …"
    elif state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        who, advice = "others", f"Run chmod go-w {file}"
    else:
        return
    raise ConfigError(f"{file}: root runs no command of a file that {who} can change ({name}). {advice}")


def _commands(tables: Mapping[str, Any]) -> Iterator[str]:
    """The names of the settings that are commands."""
    for section, values in tables.items():
        for table in values if isinstance(values, list) else [values]:
            if isinstance(table, Mapping):
                yield from (f"{section}.{key}" for key, value in table.items() if key.endswith(_COMMAND) and value)


def _reason(problem: ValueError) -> str:
    """Why a file cannot be parsed. Who appends an example to a file meets a section that is there already."""
    if twice := _TWICE.search(str(problem)):
        name = ".".join(re.findall(r"'(.*?)'", twice["names"]))
        return f"line {twice['line']}: the section [{name}] is there already; write its settings under the first one"
    return f"not valid TOML: {problem}"


def _owner(file: Path) -> str:
    """The user who owns a file, or else the folder in which this user may see nothing."""
    for path in (file, *file.parents):
        with contextlib.suppress(OSError, KeyError):
            return path.owner()
    return "postroad"


def is_setting(variable: str) -> bool:
    """Whether an environment variable names a setting."""
    return variable.startswith(PREFIX) and "__" in variable


def from_environment(
    environment: Mapping[str, str], tables: Mapping[str, Any], entries: Mapping[str, Mapping[str, object]]
) -> dict[str, dict[str, Any]]:
    """The settings in the environment, with the types of their defaults.

    `entries` has the defaults of the entries of lists, in which an entry is found by its name.
    """
    found: dict[str, dict[str, Any]] = {}
    for variable, value in sorted(environment.items()):
        if is_setting(variable):
            section, _, key = variable.removeprefix(PREFIX).lower().partition("__")
            if section in entries:
                name, _, field = key.partition("__")
                typed = _typed(value, entries[section].get(field, ""), name=f"{section}.{name}.{field}")
                found.setdefault(section, {}).setdefault(name, {})[field] = typed
                continue
            if isinstance(tables.get(section), list):
                raise ConfigError(f"{section}: cannot be set by a variable ({variable}); write [[{section}]] in a file")
            default = tables.get(section, {}).get(key, "")
            found.setdefault(section, {})[key] = _typed(value, default, name=f"{section}.{key}")
    return found


def _typed(value: str, default: object, *, name: str) -> object:
    """Convert the text of a variable to the type of the default. Lists are separated by commas."""
    if isinstance(default, str):
        return value
    if isinstance(default, (list, tuple)):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        return [_typed(part, default[0], name=name) for part in parts] if default else parts
    if isinstance(default, dict):
        return _inline_table(value, name=name)
    try:
        return msgspec.convert(value, type(default), strict=False)
    except msgspec.ValidationError:
        raise ConfigError(
            f"{name}: {value!r} is not {'true or false' if isinstance(default, bool) else 'a whole number'}"
        ) from None


def _inline_table(value: str, *, name: str) -> object:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        raise ConfigError(
            f"{name}: {value!r} is not a table; write it as in a file, for example {{ connections = 5 }}"
        ) from None


def _merged_entries(before: list[Any], changes: object, *, name: str, source: str) -> list[Any]:
    """The list that replaces one, or the same with fields of entries by their names; an unknown name is a new entry."""
    if isinstance(changes, (list, tuple)):
        return list(changes)
    if source != ENVIRONMENT or not isinstance(changes, Mapping):
        raise ConfigError(f"{name}: is a list of tables (in {source}); write [[{name}]] above each of them")
    by_name = {entry.get("name"): dict(entry) for entry in before if isinstance(entry, Mapping)}
    for entry_name, fields in changes.items():
        by_name.setdefault(entry_name, {"name": entry_name}).update(fields)
    return list(by_name.values())


def _refuse_former(section: str, values: object, *, source: str) -> None:
    for key in values if isinstance(values, Mapping) else ():
        if sentence := former_names.SENTENCES.get(f"{section}.{key}"):
            raise ConfigError(f"{section}.{key}: {sentence} (in {source})")


def merge(tables: dict[str, Any], changes: Mapping[str, Any], *, source: str) -> None:
    """Override settings in place. Raises ConfigError for an unknown section or key."""
    for section, values in changes.items():
        _refuse_former(section, values, source=source)
        if section not in tables:
            raise ConfigError(f"{section}: unknown section (in {source}); known: {', '.join(tables)}")
        if isinstance(tables[section], list):
            tables[section] = _merged_entries(tables[section], values, name=section, source=source)
            continue
        if not isinstance(values, Mapping):
            raise ConfigError(
                f"{section}: is a section, not a setting (in {source}); write [{section}] and its settings below it"
            )
        for key, value in values.items():
            if key not in tables[section]:
                raise ConfigError(
                    f"{section}.{key}: unknown setting (in {source}); known: {', '.join(tables[section])}"
                )
            before = tables[section][key]
            # A nested table, such as [providers.google], keeps the keys that are not given.
            both = isinstance(before, Mapping) and isinstance(value, Mapping)
            tables[section][key] = {**before, **value} if both else value


# Secrets that are not in the settings themselves: in a file, or printed by a command.
#
# A command is a list of arguments, and no shell reads it. It runs once in a process, before frontends are forked, which
# inherit what it printed. Errors name the setting and the program: arguments and output may be secret, and what the
# program writes to its standard error may repeat them.

# A secret store on a network answers within seconds; a prompt for a password never does.
COMMAND_SECONDS: Final = 30.0
# Many times the longest key or URL.
MAX_OUTPUT_BYTES: Final = 65_536
# The ways of giving each secret of a section; those of an upstream are in its entry.
WAYS: Final = (
    ("security", ("secret_key", "secret_key_file", "secret_key_command")),
    ("database", ("url", "url_file", "url_command")),
)


def check_single_source(place: str, given: Mapping[str, object]) -> None:
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
