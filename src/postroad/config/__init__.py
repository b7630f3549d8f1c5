"""Settings: parsed once, frozen, and complete.

`defaults.toml` holds every setting with its default and its explanation. A file, then variables named
`POSTROAD_<SECTION>__<KEY>`, then flags are laid over it. Unknown keys, wrong types and impossible values are errors
that name the setting; nothing is guessed. A variable without the double underscore is not ours: orchestrators set names
such as `POSTROAD_PORT` by themselves.
"""

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args
from urllib import parse

import msgspec

from postroad.config import sections, sources
from postroad.config.sections import Delivery as Delivery
from postroad.config.sections import Pool as Pool
from postroad.config.sections import Pools as Pools
from postroad.config.sections import Security as Security
from postroad.config.sections import Settings as Settings
from postroad.config.sources import ConfigError as ConfigError

# An HMAC key shorter than its hash weakens it; so does one that a person can remember.
SECRET_KEY_BYTES: Final = 32

DATABASE_SCHEMES: Final = ("sqlite:///", "postgresql://", "postgres://")
MAX_PORT: Final = 65_535
DNS_PORT: Final = 53
_TOKEN = re.compile(r"[!-~]{16,1000}")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


class Endpoint(NamedTuple):
    """Where to listen. Port 0 asks the system for a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def load(
    file: Path | None = None,
    *,
    environment: Mapping[str, str],
    overrides: Mapping[str, Mapping[str, object]] | None = None,
) -> Settings:
    """The settings from the defaults, a file, the environment and overrides, in this order."""
    tables = defaults()
    if file is not None:
        sources.merge(tables, sources.read(file), source=str(file))
    sources.merge(tables, sources.from_environment(environment, tables), source="environment")
    sources.merge(tables, overrides or {}, source="command line")
    try:
        settings = msgspec.convert(tables, Settings)
    except msgspec.ValidationError as problem:
        raise ConfigError(_explain(str(problem), tables)) from None
    _validate(settings)
    return settings


def defaults() -> dict[str, dict[str, Any]]:
    """Every setting by section and key, with its default."""
    return tomllib.loads(resources.files("postroad").joinpath("defaults.toml").read_text(encoding="utf-8"))


def has_variables(environment: Mapping[str, str]) -> bool:
    """Whether the environment holds any setting."""
    return any(sources.is_setting(variable) for variable in environment)


def endpoint(text: str, *, name: str) -> Endpoint:
    """`host:port`, with an IPv6 host in brackets (RFC 3986 section 3.2.2)."""
    host, _, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not (_is_ipv6(host[1:-1]) if bracketed else _HOST_NAME.fullmatch(host)):
        msg = f"{name}: {text!r} is not an address; write host:port, for example 127.0.0.1:8025 or [::1]:8025"
        raise ConfigError(msg)
    if not (port.isascii() and port.isdigit() and int(port) <= MAX_PORT):
        msg = f"{name}: {text!r} has no port between 0 and {MAX_PORT}; write host:port, for example 127.0.0.1:8025"
        raise ConfigError(msg)
    return Endpoint(host[1:-1] if bracketed else host, int(port))


def secret_key(settings: Security) -> bytes:
    """The installation's key; a missing or weak one is refused."""
    text = settings.secret_key
    if settings.secret_key_file:
        try:
            text = Path(settings.secret_key_file).read_text(encoding="utf-8").strip()
        except OSError as problem:
            msg = f"security.secret_key_file: {settings.secret_key_file} cannot be read: {problem.strerror}"
            raise ConfigError(msg) from None
        except UnicodeDecodeError:
            msg = f"security.secret_key_file: {settings.secret_key_file} is not text"
            raise ConfigError(msg) from None
    key = text.encode()
    if len(key) < SECRET_KEY_BYTES or len(set(key)) < SECRET_KEY_BYTES // 4:
        msg = (
            f"security.secret_key: missing or too weak; give at least {SECRET_KEY_BYTES} random bytes, "
            "for example from 'openssl rand -base64 48', there, as POSTROAD_SECURITY__SECRET_KEY, "
            "or in a file that security.secret_key_file names"
        )
        raise ConfigError(msg)
    return key


def _validate(settings: Settings) -> None:
    """What a type cannot say."""
    if not settings.database.url.startswith(DATABASE_SCHEMES) or settings.database.url == "sqlite:///":
        # The value is not repeated: it may hold a password.
        raise ConfigError("database.url: write sqlite:///path/to/file.db or postgresql://user:password@host/name")
    _validate_http(settings.http)
    _validate_metrics(settings.metrics)
    _validate_delivery(settings.delivery)
    _validate_webhooks(settings.webhooks)
    _validate_submission(settings.submission)
    _validate_guards(settings)
    if settings.inbound.listen:
        endpoint(settings.inbound.listen, name="inbound.listen")
    if settings.security.secret_key and settings.security.secret_key_file:
        raise ConfigError("security: secret_key and secret_key_file are both set; keep one of them")


def _validate_http(http: sections.Http) -> None:
    endpoint(http.listen, name="http.listen")
    address = http.base_url
    if address and not _is_base_url(address):
        msg = (
            f"http.base_url: {address!r} is not an address; write http:// or https://, a host, and no slash at the end"
        )
        raise ConfigError(msg)
    for proxy in http.trusted_proxies:
        if not _is_network(proxy):
            msg = (
                f"http.trusted_proxies: {proxy!r} is neither an address nor a network; "
                "write for example 127.0.0.1 or 10.0.0.0/8"
            )
            raise ConfigError(msg)


def _validate_metrics(metrics: sections.Metrics) -> None:
    if metrics.listen:
        endpoint(metrics.listen, name="metrics.listen")
    # What it is compared with is a token of RFC 6750; the value is not repeated, because it is a secret.
    if metrics.token and not _TOKEN.fullmatch(metrics.token):
        raise ConfigError("metrics.token: write at least 16 printable ASCII characters without blanks, or nothing")


def _validate_delivery(delivery: Delivery) -> None:
    if delivery.smarthost:
        _remote(delivery.smarthost, name="delivery.smarthost")
    for resolver in delivery.resolvers:
        dns_server(resolver)
    for address in delivery.source_addresses:
        if not _is_address(address):
            raise ConfigError(f"delivery.source_addresses: {address!r} is not an IP address")
    for name in ("hostname", "return_path_domain"):
        text = getattr(delivery, name)
        if text and not _HOST_NAME.fullmatch(text):
            raise ConfigError(f"delivery.{name}: {text!r} is not a host name")
    if not delivery.retry_seconds:
        raise ConfigError("delivery.retry_seconds: empty; give at least one delay, in seconds")


def _validate_webhooks(webhooks: sections.Webhooks) -> None:
    for entry in webhooks.allow_private:
        if not _is_network(entry) and not _HOST_NAME.fullmatch(entry.removeprefix("*.")):
            msg = (
                f"webhooks.allow_private: {entry!r} is neither a network nor a host name; "
                "write for example 10.1.0.0/16, hooks.internal or *.internal"
            )
            raise ConfigError(msg)


def _validate_submission(submission: sections.Submission) -> None:
    for name in ("listen", "tls_listen"):
        if getattr(submission, name):
            endpoint(getattr(submission, name), name=f"submission.{name}")
    has_certificate = bool(submission.tls_certificate)
    if has_certificate != bool(submission.tls_key):
        raise ConfigError("submission: tls_certificate and tls_key belong together; give both or none")
    if submission.tls_listen and not has_certificate:
        raise ConfigError("submission.tls_listen: needs tls_certificate and tls_key")
    if submission.listen and not has_certificate and not submission.auth_without_tls:
        msg = (
            "submission.listen: nobody could log in there; give tls_certificate and tls_key, "
            "or set auth_without_tls = true on a network that nobody else can listen to"
        )
        raise ConfigError(msg)


def _validate_guards(settings: Settings) -> None:
    guard = settings.bounce_guard
    for kind in ("", "complaint_"):
        if getattr(guard, f"{kind}warn_percent") > getattr(guard, f"{kind}suspend_percent"):
            raise ConfigError(f"bounce_guard.{kind}warn_percent: more than {kind}suspend_percent; warn first")
    caps = settings.warmup.recipients_per_day
    if list(caps) != sorted(caps):
        raise ConfigError("warmup.recipients_per_day: a day may not allow less than the one before")
    if settings.retention.body_days > settings.retention.message_days:
        raise ConfigError("retention.body_days: more than message_days; a body is kept no longer than its message")


def dns_server(text: str) -> Endpoint:
    """A DNS server as `address` or `address:port`; an IPv6 address with a port stands in brackets."""
    if _is_address(text):
        return Endpoint(text, DNS_PORT)
    where = _remote(text, name="delivery.resolvers")
    if not _is_address(where.host):
        raise ConfigError(f"delivery.resolvers: {where.host!r} is not an IP address; a resolver cannot be looked up")
    return where


def _remote(text: str, *, name: str) -> Endpoint:
    """Where somebody else listens."""
    where = endpoint(text, name=name)
    if not where.port:
        raise ConfigError(f"{name}: nobody can be reached at port 0; write host:port")
    return where


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _is_network(text: str) -> bool:
    try:
        return bool(ipaddress.ip_network(text))
    except ValueError:
        return False


def _is_base_url(text: str) -> bool:
    try:
        parts = parse.urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and not text.endswith("/") and not parts.query
    except ValueError:
        return False


def _is_ipv6(text: str) -> bool:
    try:
        return bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False


def _explain(problem: str, tables: Mapping[str, Mapping[str, object]]) -> str:
    """A validator's words as a sentence that names the setting."""
    text, _, place = problem.partition(" - at `$.")
    place = place.rstrip("`")
    section, _, key = place.partition(".")
    if text.startswith("Invalid enum value"):
        allowed = get_args(Settings.__annotations__[section].__annotations__[key])
        return f"{place}: {tables[section][key]!r} is not one of {', '.join(allowed)}"
    return f"{place}: {text[0].lower()}{text[1:]}"
