"""The parts of the documentation that are made of the code: `make docs-tables` writes them, a test compares them.

A part stands in its page between two comments with its name. Its text lives in the code, once: in the help of commands,
the comments of defaults.toml, the docstrings of errors, the descriptions of events and endpoints.
"""

import collections
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

import postroad
from postroad import cli, errors
from postroad.api import openapi
from postroad.api import routes as api_routes
from postroad.cli.framework import lazy_commands
from postroad.config import changes
from postroad.dashboard.mail import glossary
from postroad.dashboard.settings import webhooks
from postroad.model.events import events
from postroad.model.people import callers
from postroad.telemetry import metrics
from tests.api.operator import conftest as operator_routes
from tests.compat import method_table

ROOT: Final = Path(__file__).parents[2]
DEFAULTS: Final = ROOT / "src" / "postroad" / "defaults.toml"
CHANGELOG: Final = ROOT / "CHANGELOG.md"
BEGIN: Final = "<!-- {name}: begin; written by make docs-tables -->\n"
END: Final = "<!-- {name}: end -->\n"
# Options that many commands have, with the same help: the page explains them once.
COMMON_OPTIONS: Final = frozenset({"--url", "--data", "--config", "--account", "--json", "--help"})
COMMON_FROM: Final = 3
# What decides about mail has a page of its own; the other sections are about the service.
MAIL_SECTIONS: Final = frozenset(
    {"", "credits", "domains", "delivery", "providers", "inbound", "webhooks", "limits", "quotas", "warmup"}
    | {"bounce_guard", "retention", "tls_reports"}
)


def commands() -> str:
    """Every command with its help and the names of its arguments and own options, which its `--help` explains."""
    found = dict(_walk(cli.main, "postroad"))
    uses = collections.Counter(
        (option.opts[0], option.help)
        for command in found.values()
        for option in command.get_params(click.Context(command))
        if isinstance(option, click.Option)
    )
    common = {option for option, count in uses.items() if option[0] in COMMON_OPTIONS and count >= COMMON_FROM}
    return "\n".join(_command(path, command, common) for path, command in found.items())


def _walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _walk(child, f"{path} {name}")
    else:
        yield path, command.load() if isinstance(command, lazy_commands.LazyCommand) else command


def _command(path: str, command: click.Command, common: set[tuple[str, str | None]]) -> str:
    context = click.Context(command, info_name=path)
    words = []
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Argument):
            words.append(f"`{parameter.make_metavar(context)}`")
        elif "--help" not in parameter.opts and (parameter.opts[0], getattr(parameter, "help", None)) not in common:
            words.append(f"`{parameter.opts[0]}`")
    synopsis = [" ".join(words), ""] if words else []
    return "\n".join([f"### `{path}`", "", *synopsis, *_sentences(inspect.cleandoc(command.help or "")), ""])


def reference(*, of_mail: bool) -> str:
    """The settings of the mail or of the service, section by section, as in defaults.toml."""
    notes = {section: note for note, section in re.findall(r"(?m)^# (.*)\n\[(\w+)\]$", DEFAULTS.read_text())}
    parts: dict[str, list[str]] = {}
    for name, default, comment in settings():
        section, _, key = name.rpartition(".")
        if (section in MAIL_SECTIONS) is of_mail:
            head = [
                f"### {_title(section)}",
                *([f"`[{section}]`"] if section else []),
                *filter(None, [notes.get(section)]),
            ]
            text = re.sub(r"\bdocs/([\w-]+\.md)", r"[\1](\1)", comment)
            lines = parts.setdefault(section, ["\n\n".join(head), ""])
            lines.append("\n  ".join([f"- `{key} = {default}`:", *_sentences(text)]))
    return "\n\n".join("\n".join(lines) for lines in parts.values()) + "\n"


def _title(section: str) -> str:
    titles = {
        "": "Upstreams and source addresses",
        "api_keys": "API keys",
        "credentials": "SMTP credentials",
        "http": "HTTP",
        "openapi": "OpenAPI document",
        "acme": "ACME",
        "sso": "Single sign-on",
        "tls": "TLS",
        "tls_reports": "TLS reports",
        "warmup": "Warm-up",
    }
    return titles.get(section) or section.replace("_", " ").capitalize()


def settings() -> Iterator[tuple[str, str, str]]:
    """Each setting as `section.key`, with its default as written and the comment above it."""
    section, comment = "", ""
    for line in DEFAULTS.read_text().splitlines():
        if header := re.fullmatch(r"\[(\w+)\]", line):
            section = header[1]
        elif line.startswith("# "):
            comment = f"{comment} {line.removeprefix('# ')}".strip()
        elif setting := re.fullmatch(r"(\w+) = (.*)", line):
            yield f"{section}.{setting[1]}".lstrip("."), setting[2], comment
        if not line.startswith("#"):
            comment = ""


def error_codes() -> str:
    """Every code, in the order of its status."""
    kinds = [kind for kind in errors.PostroadError.__subclasses__() if kind.__module__ == errors.__name__]
    rows = [
        [f"`{kind.code}`", str(kind.status), f"`{kind.smtp_reply}`", str(kind.__doc__), kind.advice]
        for kind in sorted(kinds, key=lambda kind: kind.status)
    ]
    return _table(["Code", "HTTP", "SMTP", "When", "What to do"], rows)


def event_types() -> str:
    """Every type of event: when it is sent, and the members that only it has."""
    common = {field.name for field in msgspec.structs.fields(events.DataV2)}
    parts = []
    for kind, text in webhooks.EVENTS.items():
        fields = msgspec.structs.fields(events.data_type(kind, events.V2))
        own = [field for field in fields if not events.is_email(kind) or field.name not in common]
        parts.append("\n".join([f"### `{kind}`", "", *_sentences(text), "", *_members(own, prefix="data."), ""]))
    return "\n".join(parts).replace("\n\n\n", "\n\n")


def event_members() -> str:
    """The members of an event about a recipient."""
    first = {field.name for field in msgspec.structs.fields(events.Data)}
    rows = [
        [f"`data.{field.encode_name}`", "1 and 2" if field.name in first else "2", _description(field)]
        for field in msgspec.structs.fields(events.DataV2)
    ]
    return _table(["Member", "Version", "Meaning"], rows)


def _members(fields: Iterable[msgspec.structs.FieldInfo], *, prefix: str) -> list[str]:
    return [f"- `{prefix}{field.encode_name}`: {_description(field)}" for field in fields]


def _description(field: msgspec.structs.FieldInfo) -> str:
    schema = msgspec.json.schema(field.type)
    return str(schema.get("description", ""))


def all_metrics() -> str:
    """Every metric with its type, its labels and its help."""
    rows = [
        [
            f"`{metric.name}`",
            type(metric).__name__.lower(),
            ", ".join(f"`{label}`" for label in metric.labels),
            metric.help,
        ]
        for metric in vars(metrics.Metrics()).values()
        if isinstance(metric, (metrics.Counter, metrics.Gauge, metrics.Histogram))
    ]
    return _table(["Metric", "Type", "Labels", "Meaning"], sorted(rows))


def endpoints() -> str:
    """Every endpoint below /v1."""
    return _endpoints(openapi.document(api_routes.ROUTES, version=postroad.__version__)["paths"])


def operator_endpoints() -> str:
    """Every endpoint below /v1/operator."""
    return _endpoints(openapi.document(operator_routes.ALL_ROUTES, version=postroad.__version__)["paths"])


def _endpoints(paths: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    """The endpoints of each resource. What each does is in the OpenAPI document."""
    resources: dict[str, list[str]] = {}
    for path, item in paths.items():
        if path.startswith("/v1/"):
            resource = path.removeprefix("/v1/").removeprefix("operator/").split("/")[0].removesuffix(".json")
            resources.setdefault(resource, []).extend(f"`{method.upper()} {path}`" for method in item)
    return "".join(f"- {_title(name.replace('-', '_'))}: {', '.join(codes)}\n" for name, codes in resources.items())


def permissions() -> str:
    """What each role permits, and an SMTP credential."""
    columns = {
        **{name: callers.ROLE_PERMISSIONS[role] for role, (name, _) in callers.ROLE_TEXTS.items()},
        "Operator": callers.OPERATOR_PERMISSIONS,
        "SMTP credential": callers.PASSWORD_PERMISSIONS,
    }
    rows = [
        [text, *("yes" if permission in granted else "no" for granted in columns.values())]
        for permission, text in callers.PERMISSION_TEXTS.items()
    ]
    return _table(["Permission", *columns], rows)


def terms() -> str:
    """The terms of the glossary, section by section."""
    parts = []
    for section in glossary.sections(has_credits=True):
        items = (f"**{term}**: " + "\n  ".join(_sentences(meaning)) for term, meaning in section.terms)
        parts.append(f"## {section.title}\n\n- " + "\n- ".join(items) + "\n")
    return "\n".join(parts)


def roles() -> str:
    """The roles and what they are for."""
    return _table(
        ["Role", "`role`", "Summary"], [[name, f"`{role}`", text] for role, (name, text) in callers.ROLE_TEXTS.items()]
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def _sentences(text: str) -> list[str]:
    """A text as Markdown: a sentence a line, paragraphs apart."""
    paragraphs = [re.sub(r"(?<=[.:]) (?=[A-Z])", "\n", _line(part)) for part in text.split("\n\n")]
    return "\n\n".join(paragraphs).splitlines()


PARTS: Final[Mapping[str, Mapping[str, Callable[[], str]]]] = {
    "docs/commands.md": {"commands": commands},
    "docs/configuration.md": {"settings": functools.partial(reference, of_mail=False)},
    "docs/errors.md": {"codes": error_codes},
    "docs/glossary.md": {"terms": terms},
    "docs/management.md": {"endpoints": endpoints},
    "docs/metrics.md": {"metrics": all_metrics},
    "docs/operator.md": {"endpoints": operator_endpoints},
    "docs/roles.md": {"permissions": permissions, "roles": roles},
    "docs/settings-mail.md": {"settings": functools.partial(reference, of_mail=True)},
    "docs/webhook-events.md": {"members": event_members, "types": event_types},
    "extensions/postmark/README.md": {"methods": functools.partial(method_table.tables, "postmark")},
    "extensions/resend/README.md": {"methods": functools.partial(method_table.tables, "resend")},
}


def written(name: str) -> str:
    """A page with its parts as they have to be."""
    page = (ROOT / name).read_text()
    for part, make in PARTS[name].items():
        begin, end = BEGIN.format(name=part), END.format(name=part)
        before, found, rest = page.partition(begin)
        assert found, f"{name} has no place for {part!r}"
        page = f"{before}{begin}\n{make()}\n{end}{rest.partition(end)[2]}"
    return page


def changelog(text: str, found: Sequence[changes.Change]) -> str:
    """The changelog, with what an upgrade asks for at the beginning of each section but that of the first release."""
    introduction, *sections, first = re.split(r"(?m)^(?=## \[)", text)
    titles = [re.findall(r"\A## \[(.+?)\]", section)[0] for section in (*sections, first)]
    begin, end = BEGIN.format(name="upgrade"), END.format(name="upgrade")
    written = [introduction]
    for title, section in zip(titles, sections, strict=False):
        is_next = title == "Unreleased" and postroad.__version__ not in titles
        version = postroad.__version__ if is_next else title
        heading, _, rest = section.partition("\n\n")
        rest = rest.partition(end)[2].removeprefix("\n") if rest.startswith(begin) else rest
        lines = [_upgrade_line(change) for change in found if change.version == version]
        asked = "### Upgrade\n\n" + "".join(lines) if lines else "An upgrade to this version needs no action.\n"
        written.append(f"{heading}\n\n{begin}\n{asked}\n{end}\n{rest}")
    return "".join([*written, first])


def _upgrade_line(change: changes.Change) -> str:
    if change.kind == changes.RUN:
        return f"- Run `{change.subject}`: {change.text}.\n"
    is_setting = change.kind in (changes.REMOVED, changes.CHANGED)
    return f"- {f'`{change.subject}`' if is_setting else change.subject} {change.text}.\n"


if __name__ == "__main__":
    for name in PARTS:
        (ROOT / name).write_text(written(name))
    CHANGELOG.write_text(changelog(CHANGELOG.read_text(), changes.shipped()))
