"""Which methods of other services' packages work here: the files in `methods/`, and the tables made of them.

A file names its `package`, and has these parts. `works` has the arguments of a call for each method; `unsupported` has
the methods that are answered with an error that names what is not supported, and `arguments` what some of them need to
ask at all; `local` has those that ask no server of the API.
Several files may be about one package; what one of them calls working, another need not remove.

`make docs-tables` writes the tables into the README of each extension.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "methods"


@dataclass(slots=True)
class Package:
    """The methods of one package. Arguments are JSON; `$name` stands for something that the test creates."""

    name: str
    works: dict[str, list[Any]] = field(default_factory=dict)
    unsupported: set[str] = field(default_factory=set)
    arguments: dict[str, list[Any]] = field(default_factory=dict)
    local: set[str] = field(default_factory=set)

    @property
    def methods(self) -> set[str]:
        """All of them."""
        return {*self.works, *self.unsupported, *self.local}


def load() -> dict[str, Package]:
    """All packages by name."""
    packages: dict[str, Package] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        given = tomllib.loads(path.read_text())
        package = packages.setdefault(given["package"], Package(given["package"]))
        package.works |= given.get("works", {})
        package.unsupported |= _names(given.get("unsupported", {}))
        package.arguments |= given.get("arguments", {})
        package.local |= _names(given.get("local", {}))
    for package in packages.values():
        package.unsupported -= set(package.works) | package.local
    return packages


def _names(groups: Mapping[str, list[str]]) -> set[str]:
    """`Emails = ["share"]` stands for `Emails.share`; a group without a name has methods of the client itself."""
    return {f"{group}.{name}" if group else name for group, names in groups.items() for name in names}


def tables(service: str) -> str:
    """How many methods of the packages of a service work, and which, as Markdown."""
    packages = [package for package in load().values() if service in package.name]
    lines = [
        "| package | methods | work | not supported | make no request |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {package.name} | {len(package.methods)} | {len(package.works)} | {len(package.unsupported)} "
        f"| {len(package.local)} |"
        for package in packages
    ]
    for package in packages:
        groups: dict[str, list[str]] = {}
        for method in sorted(package.works):
            group, _, name = method.rpartition(".")
            groups.setdefault(group, []).append(f"`{name}`")
        lines += ["", f"{package.name}:", ""]
        lines += [f"- {f'`{group}`' if group else 'the client'}: {', '.join(names)}" for group, names in groups.items()]
    return "\n".join(lines) + "\n"
