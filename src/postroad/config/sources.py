"""The sources of settings, each overriding the one before: a file, the environment, flags.

Values are untyped tables here. An unknown section or key is an error that names its source.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

PREFIX: Final = "POSTROAD_"


class ConfigError(ValueError):
    """A setting is unknown, of the wrong type or invalid."""


def read(file: Path) -> dict[str, Any]:
    """The tables of a file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigError(f"{file}: cannot be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{file}: not valid TOML: {problem}") from None


def is_setting(variable: str) -> bool:
    """Whether an environment variable names a setting."""
    return variable.startswith(PREFIX) and "__" in variable


def from_environment(environment: Mapping[str, str], tables: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """The settings in the environment, with the types of their defaults."""
    found: dict[str, dict[str, object]] = {}
    for variable, value in sorted(environment.items()):
        if is_setting(variable):
            section, _, key = variable.removeprefix(PREFIX).lower().partition("__")
            default = tables.get(section, {}).get(key, "")
            found.setdefault(section, {})[key] = _typed(value, default, name=f"{section}.{key}")
    return found


def _typed(value: str, default: object, *, name: str) -> object:
    """Convert the text of a variable to the type of the default. Lists are separated by commas."""
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


def merge(tables: dict[str, dict[str, Any]], changes: Mapping[str, Any], *, source: str) -> None:
    """Override settings in place. Raises ConfigError for an unknown section or key."""
    for section, values in changes.items():
        if section not in tables:
            raise ConfigError(f"{section}: unknown section (in {source}); known: {', '.join(tables)}")
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
