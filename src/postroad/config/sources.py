"""The sources of settings, each overriding the one before: a file, the environment, flags.

Values are untyped tables here. An unknown section or key is an error that names its source.
"""

import contextlib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from postroad.config import changes as upgrade_changes

PREFIX: Final = "POSTROAD_"
ENVIRONMENT: Final = "environment"
# What `tomllib` says.
_TWICE: Final = re.compile(r"Cannot declare \((?P<names>.+)\) twice \(at line (?P<line>\d+)")


class ConfigError(ValueError):
    """A setting is unknown, of the wrong type or invalid."""


def read(file: Path) -> dict[str, Any]:
    """The tables of a file."""
    try:
        with file.open("rb") as opened:
            return tomllib.load(opened)
    except PermissionError:
        raise ConfigError(
            f"{file}: cannot be read by this user. "
            f"Run the command as the user of the service: runuser -u {_owner(file)} -- postroad …"
        ) from None
    except OSError as problem:
        raise ConfigError(f"{file}: cannot be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{file}: {_reason(problem)}") from None


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


def names(tables: Mapping[str, Any], entries: Collection[str]) -> Iterator[str]:
    """The settings in a source as `section.key`, whether they exist or not. `entries` are the lists of tables."""
    for section, values in tables.items():
        found = values.values() if section in entries and isinstance(values, Mapping) else values
        for table in found if section in entries else [values]:
            yield from (f"{section}.{key}" for key in table if isinstance(table, Mapping))


def _without_removed(section: str, values: Any, known: Any, removed: dict[str, str], *, source: str) -> Any:  # noqa: ANN401 - untyped tables
    """A table without settings that no longer exist; what became of each is added to `removed`."""
    if not isinstance(values, Mapping):
        return values
    kept = {}
    for key, value in values.items():
        sentence = None if key in known else upgrade_changes.removal(f"{section}.{key}")
        if sentence:
            removed[f"{section}.{key}"] = f"{sentence} (in {source})"
        else:
            kept[key] = value
    return kept


def merge(tables: dict[str, Any], changes: Mapping[str, Any], *, source: str, removed: dict[str, str]) -> None:
    """Override settings in place. Raises ConfigError for an unknown section or key, unless it existed once.

    What became of one that no longer exists is added to `removed`.
    """
    for section, given in changes.items():
        values = _without_removed(section, given, tables.get(section, ()), removed, source=source)
        if section not in tables:
            if given and not values:
                continue
            raise ConfigError(f"{section}: unknown section (in {source}); known: {', '.join(tables)}")
        if isinstance(tables[section], list):
            merged = _merged_entries(tables[section], values, name=section, source=source)
            tables[section] = [_without_removed(section, entry, (), removed, source=source) for entry in merged]
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


# The ways of giving each secret of a section; those of an upstream are in its entry.
WAYS: Final = (
    ("security", ("installation_key", "installation_key_file")),
    ("database", ("url", "url_file")),
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
