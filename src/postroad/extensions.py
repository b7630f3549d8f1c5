"""What other packages add to the service: an extension names its parts, and each process imports those that it uses.

A package has an entry point in the group `postroad.extensions`, which is an `Extension`. Its members name objects as
`package.module:attribute`, so that no command waits for a part that it does not need, and nothing of a package that is
not installed is looked for. docs/extensions.md describes each kind of part, with an example.
"""

import dataclasses
import functools
import pkgutil
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeVar

GROUP: Final = "postroad.extensions"
# The extras of this package that install an extension, by the commands and event formats which that extension has.
KNOWN: Final = {
    "import resend": "resend",
    "import postmark": "postmark",
    "mcp": "mcp",
    "format resend": "resend",
    "format postmark": "postmark",
}

Part = TypeVar("Part")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Extension:
    """The parts of an extension; most have one or two kinds."""

    # HTTP APIs with a prefix, authentication and errors of their own: `api.extension_api.HttpApi`.
    apis: Sequence[str] = ()
    # Functions from `api.extension_api.Mount` to routes beside those of our own API.
    routes: Sequence[str] = ()
    # Formats of webhook events: `model.events.event_formats.EventFormat`.
    event_formats: Sequence[str] = ()
    # Commands of `postroad` by their words, such as `import resend`, with the line that help prints.
    commands: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)


class BrokenExtension(Exception):
    """An installed extension cannot be used; the message names it."""


@functools.cache
def installed() -> Sequence[Extension]:
    """The installed extensions by name, as this process found them when it asked first."""
    from importlib import metadata  # noqa: PLC0415 - a command that no extension is asked for need not wait for it

    found = sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name)
    return [load(entry.value, Extension) for entry in found]


def load(where: str, kind: type[Part]) -> Part:
    """The object at `package.module:attribute`."""
    try:
        part = pkgutil.resolve_name(where)
    except (ImportError, AttributeError, ValueError) as problem:
        raise BrokenExtension(f"the extension at {where} cannot be loaded: {problem}") from problem
    if not isinstance(part, kind):
        raise BrokenExtension(f"the extension at {where} is no {kind.__name__}")
    return part


def parts(member: Literal["apis", "routes", "event_formats"], kind: type[Part]) -> list[Part]:
    """The parts that all installed extensions have in this member."""
    return [load(where, kind) for extension in installed() for where in getattr(extension, member)]


def how_to_install(part: str) -> str:
    """How to add a missing part: `import resend`, or `format resend`."""
    extra = KNOWN.get(part)
    return f"install it with: pip install 'postroad[{extra}]'" if extra else "install the package that has it"
