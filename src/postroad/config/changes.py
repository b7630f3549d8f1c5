"""What an upgrade asks of the people who run Postroad: `changes.toml`, which explains its own format.

A settings file with a setting that was removed is refused with what became of it, so that nobody believes a setting to
be in force that no longer exists. `postroad migrate --check` lists what else changed.
"""

import functools
import re
import tomllib
from collections.abc import Collection, Sequence
from importlib import resources
from typing import Final

import msgspec

REMOVED: Final = "removed"
CHANGED: Final = "changed"
RUN: Final = "run"
# A version before all others.
OLDEST: Final = "0.0.0"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?(?:\.dev(\d+))?(?:\+.*)?")


class Change(msgspec.Struct, frozen=True):
    """A line of the file: a setting, command or behaviour, and the rest of the sentence about it."""

    version: str
    kind: str
    subject: str
    text: str

    @property
    def sentence(self) -> str:
        """The sentence."""
        return f"Run '{self.subject}': {self.text}." if self.kind == RUN else f"{self.subject} {self.text}."


def age(version: str) -> tuple[int, ...]:
    """The place of a version among others. Builds and candidates of a release are older than it (PEP 440)."""
    parts = _VERSION.fullmatch(version)
    if parts is None:
        msg = f"{version!r} is not a version of Postroad"
        raise ValueError(msg)
    *release, stage, number, build = parts.groups()
    place = ("a", "b", "rc").index(stage) if stage else -1 if build else 3
    return (*map(int, release), place, int(number or 0), build is None, int(build or 0))


def parse(text: str) -> Sequence[Change]:
    """The changes of a file, the oldest version first."""
    found = [
        Change(version, kind, subject, sentence)
        for version, kinds in tomllib.loads(text).items()
        for kind, lines in kinds.items()
        for subject, sentence in lines.items()
    ]
    return sorted(found, key=lambda change: age(change.version))


@functools.cache
def shipped() -> Sequence[Change]:
    """The changes up to this version. The file is read only when somebody asks: most starts do not."""
    return parse(resources.files("postroad").joinpath("changes.toml").read_text(encoding="utf-8"))


def removal(setting: str) -> str | None:
    """What became of a setting that no longer exists."""
    found = (change.text for change in shipped() if (change.kind, change.subject) == (REMOVED, setting))
    return next(found, None)


def concerning(
    changes: Sequence[Change], *, since: str | None, version: str, settings: Collection[str]
) -> Sequence[Change]:
    """What an upgrade from one version to another asks of an installation that has these settings.

    A setting that was removed counts whenever it is still there. Without a version before, nothing else changed.
    """

    def concerns(change: Change) -> bool:
        if change.kind == REMOVED:
            return change.subject in settings
        is_newer = since is not None and since != version and age(since) < age(change.version)
        return is_newer and (change.kind != CHANGED or change.subject in settings)

    return [change for change in changes if concerns(change)]
