"""The text of a configuration file: some settings, each with the comment that `defaults.toml` has for it."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from postroad import config
from postroad.cli import output

Tables = Mapping[str, Mapping[str, object]]

HEAD: Final = """\
# Settings of Postroad. What is not here has its default; docs/configuration.md lists all settings.
# 'postroad check-config --config FILE' validates this file.
"""
_SECTION: Final = re.compile(r"\[(\w+)\]")
_SETTING: Final = re.compile(r"(\w+) = ")


def text(chosen: Tables, *, suggested: Tables) -> str:
    """A file with these settings. The suggested ones are commented out; remove the first character of their lines."""
    comments = _comments(config.defaults_text())
    parts = [HEAD]
    for section in {**chosen, **suggested}:
        lines = [f"[{section}]" if section in chosen else f"#[{section}]"]
        for tables, prefix in ((chosen, ""), (suggested, "#")):
            for key, value in tables.get(section, {}).items():
                lines += [*comments[section, key], f"{prefix}{key} = {output.literal(value)}"]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _comments(defaults: str) -> dict[tuple[str, str], list[str]]:
    """The comment lines above each setting, by section and key."""
    return {(section, key): lines for section, key, lines in _settings(defaults)}


def _settings(defaults: str) -> Iterator[tuple[str, str, list[str]]]:
    section, above = "", list[str]()
    for line in defaults.splitlines():
        if line.startswith("#"):
            above.append(line)
            continue
        if found := _SECTION.match(line):
            section = found[1]
        elif found := _SETTING.match(line):
            yield section, found[1], above
        above = []
