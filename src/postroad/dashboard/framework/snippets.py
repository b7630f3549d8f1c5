"""Code that sends a message over HTTP or SMTP or verifies an event, with the addresses of this service."""

import contextlib
import functools
import ipaddress
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from typing import Final
from urllib import parse

import msgspec

from postroad import config, errors
from postroad.dashboard.framework import literals, requests
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.services.messages import sample_send
from postroad.services.templates import templates

# What a key that does not send is tried with: something to read in each scope.
HTTP_PATHS: Final = {
    callers.Scope.READ: "/v1/messages",
    callers.Scope.TEMPLATES: "/v1/templates",
    callers.Scope.SUPPRESSIONS: "/v1/suppressions",
    callers.Scope.WEBHOOKS: "/v1/webhooks",
    callers.Scope.DOMAINS: "/v1/domains",
    callers.Scope.STATISTICS: "/v1/statistics",
    callers.Scope.TEAM: "/v1/api-keys",
    callers.Scope.OPERATOR: "/v1/operator/health",
}
API_KEY: Final = "YOUR_API_KEY"
USERNAME: Final = "YOUR_USERNAME"
PASSWORD: Final = "YOUR_PASSWORD"  # noqa: S105 - a placeholder
# For an account without a domain.
DOMAIN: Final = "example.com"


class Security(StrEnum):
    STARTTLS = "STARTTLS"
    TLS = "implicit TLS"
    NONE = "none"


class SmtpListener(msgspec.Struct, frozen=True):
    host: str
    port: int
    security: Security


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetContext:
    """The values of all snippets: service, sender and recipient. `smtp` is None without an SMTP listener."""

    base_url: str
    smtp: SmtpListener | None
    sender: str
    recipient: str
    # Whether the account may send from `sender`; else it is an example, and would be refused.
    is_sender_own: bool = True
    # What is sent: the alias of a template and sample values, or else a text.
    template: str | None = None
    variables: Mapping[str, statuses.TemplateValue] = field(default_factory=dict)
    # Whether there is such a template.
    has_template: bool = True


class Snippet(msgspec.Struct, frozen=True):
    """Code to copy; `note` says where it goes, `install` is the command to run first."""

    title: str
    note: str
    text: str
    install: str = ""


class Sources(msgspec.Struct, frozen=True):
    """The contents of snippets.toml; `pieces` are what differs in SMTP by TLS mode."""

    request: literals.Source
    http: tuple[literals.Source, ...]
    smtp: tuple[literals.Source, ...]
    pieces: Mapping[Security, Mapping[str, str]]
    verification: tuple[Snippet, ...]


# Read for the first page that shows code.
@functools.cache
def sources() -> Sources:
    return msgspec.toml.decode(resources.files(__package__).joinpath("snippets.toml").read_bytes(), type=Sources)


async def snippet_context(
    request: requests.PageRequest, limits: callers.KeyLimits = callers.NO_LIMITS
) -> SnippetContext:
    """This installation, and a message that a key with these limits may send to the user of the page."""
    sender = await sample_send.default_sender(request.ctx, request.account_id, limits.domains)
    template, variables = await _template(request, limits.templates)
    return SnippetContext(
        base_url=request.base_url.rstrip("/"),
        smtp=smtp_listener(request.ctx.settings, base_url=request.base_url),
        sender=sender or f"{sample_send.SENDER}@{limits.domains[0] if limits.domains else DOMAIN}",
        recipient=request.user.email,
        is_sender_own=sender is not None,
        template=template,
        variables=variables or {},
        has_template=variables is not None,
    )


async def _template(
    request: requests.PageRequest, aliases: Sequence[str]
) -> tuple[str | None, Mapping[str, statuses.TemplateValue] | None]:
    """The first of these templates that exists, with values for it; if none does, the first name without values."""
    for alias in aliases:
        with contextlib.suppress(errors.NotFound, errors.InvalidRequest):
            template = await templates.find_with_parts(request.ctx, request.account_id, alias)
            return alias, await request.ctx.threads.run(
                request.account_id, functools.partial(templates.example, template, now=request.ctx.clock())
            )
    return next(iter(aliases), None), None


def smtp_listener(settings: config.Settings, *, base_url: str) -> SmtpListener | None:
    """The SMTP listener of the settings; STARTTLS first, as most applications expect it."""
    chosen = settings.submission
    if chosen.listen:
        security = Security.STARTTLS if "submission" in config.tls_sections(settings) else Security.NONE
        where = config.endpoint(chosen.listen, name="submission.listen")
    elif chosen.tls_listen:
        security, where = Security.TLS, config.endpoint(chosen.tls_listen, name="submission.tls_listen")
    else:
        return None
    host = where.host if _is_this_machine(where.host) else settings.delivery.hostname
    return SmtpListener(host or parse.urlsplit(base_url).hostname or where.host, where.port, security)


def over_http(where: SnippetContext, *, api_key: str = API_KEY) -> tuple[Snippet, ...]:
    content: literals.Members = {"subject": "Hello", "text": "It works."}
    if where.template is not None:
        values = {"variables": where.variables} if where.variables else {}
        content = {"template": where.template, **values}
    message = {"from": where.sender, "to": where.recipient, **content}
    return of_email(where.base_url, message, api_key=api_key)


def of_request(base_url: str, scopes: Collection[callers.Scope], *, api_key: str) -> tuple[Snippet, ...]:
    """How to call the API with a key that does not send."""
    path = next(path for scope, path in HTTP_PATHS.items() if scope in scopes)
    values = {"url": f"{base_url}{path}", "authorization": f"Authorization: Bearer {api_key}"}
    return (_filled(sources().request, values, {}),)


def of_email(
    base_url: str, members: literals.Members, *, files: Sequence[Mapping[str, str]] = (), api_key: str = API_KEY
) -> tuple[Snippet, ...]:
    """How to send an email over HTTP. `files` are attachments as in a request; only that of curl has them."""
    request = {**members, "attachments": files} if files else members
    values = {
        "base_url": base_url,
        "api_key": api_key,
        "url": f"{base_url}/emails",
        "authorization": f"Authorization: Bearer {api_key}",
        "message": json.dumps(request, ensure_ascii=False),
    }
    return tuple(
        _filled(source, values, {"members": source.members.written(members, source.literal)} if source.members else {})
        for source in sources().http
    )


def over_smtp(where: SnippetContext, *, username: str = USERNAME, password: str = PASSWORD) -> tuple[Snippet, ...]:
    """How to send with an SMTP credential; empty without an SMTP listener."""
    if where.smtp is None:
        return ()
    listener = where.smtp
    pieces = sources().pieces[listener.security]
    values = {
        "smtp_url": f"{pieces['scheme']}://{config.Endpoint(listener.host, listener.port)}",
        "login": f"{username}:{password}",
        "username": username,
        "password": password,
        "host": listener.host,
        "sender": where.sender,
        "recipient": where.recipient,
        "from_field": f"From: {where.sender}",
        "to_field": f"To: {where.recipient}",
    }
    pieces = {**pieces, "port": str(listener.port)}
    return tuple(_filled(source, values, pieces) for source in sources().smtp)


def _filled(source: literals.Source, values: Mapping[str, str], pieces: Mapping[str, str]) -> Snippet:
    return Snippet(source.title, source.note, source.filled(values, pieces), source.install)


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
