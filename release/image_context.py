"""What the image is built from, as one archive: `docker build --file deploy/Dockerfile - < FILE`."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from release import archives


def write(source: Path, target: Path, *, seconds: int) -> None:
    """Write the build context of a folder that has the files of a commit."""
    names = [str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()]
    rules = (source / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8")
    archives.write_tar(target, {name: source / name for name in let_in(names, rules)}, seconds=seconds)


def let_in(names: Iterable[str], ignore_file: str) -> Sequence[str]:
    """The files that Docker sends to the builder."""
    rules = rules_of(ignore_file)
    return [name for name in names if not _is_ignored(name, rules)]


def rules_of(ignore_file: str) -> Sequence[str]:
    """Its patterns."""
    return [line.strip() for line in ignore_file.splitlines() if line.strip() and not line.startswith("#")]


def _is_ignored(name: str, rules: Sequence[str]) -> bool:
    """Whether Docker leaves a file out: the last rule that matches it, or a folder above it, decides."""
    folders = [str(folder) for folder in Path(name).parents][:-1]
    ignored = False
    for rule in rules:
        pattern = _expression(rule.removeprefix("!"))
        if any(pattern.fullmatch(path) for path in (name, *folders)):
            ignored = not rule.startswith("!")
    return ignored


def _expression(pattern: str) -> re.Pattern[str]:
    """A pattern of an ignore file: `*` and `?` stay within a folder, `**` does not."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.strip("/"))
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meanings.get(part, re.escape(part)) for part in parts))
