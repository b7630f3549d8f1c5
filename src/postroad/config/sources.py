"""The places where settings come from, each laid over the one before: a file, then the environment, then flags.

Everything is still plain tables of values here. An unknown section or key is an error that names its place.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

PREFIX: Final = "POSTROAD_"


class ConfigError(ValueError):
    """A setting is unknown, of the wrong type, or impossible."""


def read(file: Path) -> dict[str, Any]:
    """The tables of a file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        msg = f"{file}: cannot be read: {problem.strerror}"
        raise ConfigError(msg) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        msg = f"{file}: not valid TOML: {problem}"
        raise ConfigError(msg) from None


def is_setting(variable: str) -> bool:
    """Whether a variable of the environment is one of ours."""
    return variable.startswith(PREFIX) and "__" in variable


def from_environment(environment: Mapping[str, str], tables: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """The settings that the environment holds, with the types of their defaults."""
    found: dict[str, dict[str, object]] = {}
    for variable, value in sorted(environment.items()):
        if is_setting(variable):
            section, _, key = variable.removeprefix(PREFIX).lower().partition("__")
            default = tables.get(section, {}).get(key, "")
            found.setdefault(section, {})[key] = _typed(value, default, name=f"{section}.{key}")
    return found


def _typed(value: str, default: object, *, name: str) -> object:
    """The environment knows only text; it takes the type of the default. A list is separated by commas."""
    if isinstance(default, str):
        return value
    if isinstance(default, list):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        return [_typed(part, default[0], name=name) for part in parts] if default else parts
    if isinstance(default, dict):
        return _inline_table(value, name=name)
    try:
        return msgspec.convert(value, type(default), strict=False)
    except msgspec.ValidationError:
        msg = f"{name}: {value!r} is not {'true or false' if isinstance(default, bool) else 'a whole number'}"
        raise ConfigError(msg) from None


def _inline_table(value: str, *, name: str) -> object:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        msg = f"{name}: {value!r} is not a table; write it as in the file, for example {{ connections = 5 }}"
        raise ConfigError(msg) from None


def merge(tables: dict[str, dict[str, Any]], changes: Mapping[str, Any], *, source: str) -> None:
    """Replace what the changes name; a section or a key that is not there is refused."""
    for section, values in changes.items():
        if section not in tables:
            raise ConfigError(f"{section}: unknown section (in {source}); known are {', '.join(tables)}")
        if not isinstance(values, Mapping):
            raise ConfigError(
                f"{section}: a section, not a setting (in {source}); write [{section}] and its settings below"
            )
        for key, value in values.items():
            if key not in tables[section]:
                msg = f"{section}.{key}: unknown setting (in {source}); known are {', '.join(tables[section])}"
                raise ConfigError(msg)
            before = tables[section][key]
            # A table within a section, such as a pool, keeps what is not mentioned.
            both = isinstance(before, Mapping) and isinstance(value, Mapping)
            tables[section][key] = {**before, **value} if both else value
