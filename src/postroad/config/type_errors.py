"""What msgspec says about a setting, as a sentence for people that begins with the name of the setting."""

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from postroad.config.entries import Upstream
from postroad.config.sections import Settings

KINDS: Final = {
    "str": "a string in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list in brackets",
    "object": "a table",
}
_BOUNDS: Final = {">=": "{} or more", "<=": "{} or less", ">": "more than {}", "<": "less than {}"}
_LENGTHS: Final = {">=": "at least {}", "<=": "at most {}"}
_KIND = re.compile(r"Expected `([^`]+)`(?:, got `\w+`)?")
_BOUND = re.compile(r"Expected `\w+` (>=|<=|>|<) (\S+)")
_LENGTH = re.compile(r"Expected `(\w+)` of length (>=|<=) (\d+)")
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_ENTRY = re.compile(r"(upstreams|sources)\[(\d+)\]")


def explain(problem: str, tables: Mapping[str, Any]) -> str:
    """The sentence about a problem in these settings."""
    text, _, path = problem.partition(" - at `$.")
    path = path.rstrip("`")
    named = _ENTRY.sub(lambda entry: _name(entry, tables), path)
    if text.startswith("Invalid enum value"):
        return f"{named}: {text.removeprefix('Invalid enum value ')} is not one of {', '.join(_choices(path))}"
    if missing := _MISSING.fullmatch(text):
        return f"{named}: {missing[1]} is missing"
    if unknown := _UNKNOWN.fullmatch(text):
        return f"{named}.{unknown[1]}: unknown setting"
    return f"{named}: {_rule(text)}"


def _rule(text: str) -> str:
    if bound := _BOUND.fullmatch(text):
        return f"must be {_BOUNDS[bound[1]].format(bound[2].removesuffix('.0'))}"
    if length := _LENGTH.fullmatch(text):
        singular, plural = ("character", "characters") if length[1] == "str" else ("entry", "entries")
        return f"must have {_LENGTHS[length[2]].format(length[3])} {singular if length[3] == '1' else plural}"
    if kind := _KIND.fullmatch(text):
        return f"must be {' or '.join(KINDS.get(name, name) for name in kind[1].split(' | '))}"
    if text.startswith("Expected `str` matching regex"):
        return "is too long, or has characters that are not allowed here"
    return f"{text[0].lower()}{text[1:]}"


def _name(entry: re.Match[str], tables: Mapping[str, Any]) -> str:
    """An entry of a list by its name, if it has one."""
    found = tables[entry[1]][int(entry[2])]
    name = found.get("name") if isinstance(found, dict) else None
    return f"{entry[1]}.{name}" if isinstance(name, str) and name else entry[0]


def _choices(path: str) -> tuple[str, ...]:
    section, _, key = path.partition(".")
    # The only one in a list is that of an upstream's TLS.
    kind = Upstream if section.endswith("]") else Settings.__annotations__[section]
    return get_args(kind.__annotations__[key])
