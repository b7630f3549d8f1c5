"""Which methods of other services' packages work here: the files in `methods/`, and the tables made of them.

A file names its `package`, and has these parts. `works` has the arguments of a call for each method; `unsupported` has
the methods that are answered with an error that names what is not supported, and `arguments` what some of them need to
ask at all; `local` has those that ask no server of the API.
Several files may be about one package; what one of them calls working, another need not remove.

`python -m tests.compat.method_table` writes the tables into docs/compatibility.md.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "methods"
PAGE: Final = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN: Final = "<!-- methods: begin; written by python -m tests.compat.method_table -->\n"
END: Final = "<!-- methods: end -->\n"


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


def tables() -> str:
    """The tables of all packages, as Markdown."""
    packages = load().values()
    lines = [
        "| package | methods | work | not supported | make no request |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {len(one.methods)} | {len(one.works)} | {len(one.unsupported)} | {len(one.local)} |"
        for one in packages
    ]
    for one in packages:
        lines += ["", f"### {one.name}", "", "| methods of | work | not supported |", "|---|---|---|"]
        groups = sorted({_group(method) for method in one.methods})
        for group in groups:
            works, unsupported = (
                ", ".join(f"`{method.rpartition('.')[2]}`" for method in sorted(some) if _group(method) == group)
                for some in (one.works, one.unsupported)
            )
            if works or unsupported:
                lines.append(f"| {f'`{group}`' if group else 'the client'} | {works or '–'} | {unsupported or '–'} |")
    return "\n".join(lines) + "\n"


def _group(method: str) -> str:
    return method.rpartition(".")[0]


def page() -> str:
    """The page as it should be."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page())
