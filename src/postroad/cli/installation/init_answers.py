"""The answers that `postroad init` needs: from options, or asked for on a terminal, each checked before the next."""

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib import parse

import click

from postroad import config, errors
from postroad.cli.framework import command
from postroad.model.units import labels
from postroad.network import hostname
from postroad.storage.engine import open_store

DATABASE_VARIABLE: Final = "POSTROAD_DATABASE__URL"
# The role of deploy/postgresql-roles.sql that migrates; its password is for no file of the service.
OWNER_ROLE: Final = "postroad_owner"
# Who serves HTTPS: the service itself, with certificates that it orders, or a web server on the same host.
ACME, PROXY = "acme", "proxy"
HTTPS_QUESTION: Final = "HTTPS with certificates of Let's Encrypt, whose terms you accept, or by a proxy on this host"
# Whether mail costs credits.
ON, OFF = "on", "off"
CREDITS_QUESTION: Final = "Do you sell mail to others? If so, each recipient costs the account one credit"
# What has a default where nothing is asked. Ordering certificates accepts somebody's terms, so it has to be asked for.
OPTIONAL: Final = {"database", "https", "credits"}

Wanted = Mapping[str, str | None]


def ask_path(question: str, default: Path, *, is_folder: bool) -> Path:
    def check(text: str) -> None:
        path = Path(text)
        if not path.is_absolute():
            raise config.ConfigError(f"{text!r} is not an absolute path; write one such as {default}")
        check_writable(path if is_folder else path.parent, advice="choose another")

    return Path(_ask(question, check, default=str(default)))


def answers(wanted: Wanted, *, data: Path, asks: bool) -> Iterator[tuple[str, str]]:
    """Every answer: the option, or what is asked for. What is not in OPTIONAL cannot be guessed."""
    if not asks:
        missing = [f"--{name}" for name, value in wanted.items() if value is None and name not in OPTIONAL]
        if missing:
            raise click.UsageError(f"Missing {', '.join(missing)}; without a terminal, nothing can be asked.")
    check_given(wanted)

    def answer(name: str, question: str, default: str | None = None) -> str:
        return wanted[name] or _ask(question, functools.partial(_CHECKS[name], name), default=default)

    known = hostname.short_name()
    # A name without a dot says nothing to others.
    default = known if "." in known else None
    host = answer("hostname", "Public name of this host, such as mail.example.com", default).lower().rstrip(".")
    yield "hostname", host
    url = os.environ.get(DATABASE_VARIABLE) or f"sqlite:///{data / 'postroad.db'}"
    # A URL with a password is neither shown nor asked for.
    is_shown = asks and command.masked_address(url) == url
    if is_shown and not wanted["database"]:
        url = _ask("Database URL", _check_typed_database, default=url)
    yield "database", wanted["database"] or url
    yield "account", answer("account", "Name of the first account")
    parent = host.partition(".")[2]
    yield "domain", answer("domain", "Domain that it sends from", parent if "." in parent else host)
    yield "email", answer("email", "Email address of its owner")
    choice = click.Choice([ACME, PROXY])
    yield "https", wanted["https"] or (click.prompt(HTTPS_QUESTION, type=choice) if asks else PROXY)
    yield "credits", wanted["credits"] or (ON if asks and click.confirm(CREDITS_QUESTION, default=False) else OFF)


def check_given(wanted: Wanted) -> None:
    """Raise an error, with the name of its option, for a value that cannot be used."""
    for name, check in _CHECKS.items():
        if value := wanted[name]:
            check(f"--{name}", value)


def check_writable(folder: Path, *, advice: str) -> None:
    """Raise an error if the folder, or the first one above it that exists, cannot be written."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise config.ConfigError(f"{existing} cannot be written by this user; create {folder} for it, or {advice}")


def check_database(url: str) -> None:
    config.load(environment={}, overrides={"database": {"url": url}})
    parts = parse.urlsplit(url)
    if OWNER_ROLE in {parse.unquote(parts.username or ""), *parse.parse_qs(parts.query).get("user", [])}:
        raise config.ConfigError(
            f"{DATABASE_VARIABLE}: {OWNER_ROLE} is for 'postroad migrate'; run that first, and then "
            "'postroad init' with the URL of postroad_service, which the service uses"
        )


def _check_typed_database(url: str) -> None:
    check_database(url)
    if folder := open_store.sqlite_folder(url):
        check_writable(Path(folder), advice="choose another")


def _check_host(called: str, name: str) -> None:
    name = name.rstrip(".")
    if "." not in name or not config.is_host_name(name) or config.is_address(name):
        raise config.ConfigError(
            f"{called}: {name!r} is not a full host name; choose one such as mail.example.com, "
            "in a domain whose DNS you control"
        )


# What is wrong with an answer, after what it is called.
_CHECKS: Final[Mapping[str, Callable[[str, str], object]]] = {
    "hostname": _check_host,
    "account": labels.check_label,
    "domain": labels.parse_domain,
    "email": labels.parse_mailbox,
}


def _ask(question: str, check: Callable[[str], object], *, default: str | None = None) -> str:
    """Ask until the answer is good; a bad one is answered with the reason."""

    def checked(text: str) -> str:
        try:
            check(text)
        except config.ConfigError as problem:
            raise click.UsageError(str(problem)) from None
        except errors.PostroadError as problem:
            raise click.UsageError(problem.message) from None
        return text

    return str(click.prompt(question, default, value_proc=checked))
