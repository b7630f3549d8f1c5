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
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args
from urllib import parse

import msgspec

PREFIX: Final = "POSTROAD_"
# An HMAC key shorter than its hash weakens it; so does one that a person can remember.
SECRET_KEY_BYTES: Final = 32

MOST: Final = 1_000_000_000
Positive = Annotated[int, msgspec.Meta(ge=1, le=MOST)]

DATABASE_SCHEMES: Final = ("sqlite:///", "postgresql://", "postgres://")
HIGHEST_PORT: Final = 65_535
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


class ConfigError(ValueError):
    """A setting is unknown, of the wrong type, or impossible."""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the configuration file."""


class Database(Section, frozen=True):
    """Where the data lives."""

    url: str
    connections: Positive
    migrate_at_start: bool


class Http(Section, frozen=True):
    """The HTTP door."""

    listen: str
    base_url: str
    grace_seconds: Positive
    connections: Positive


class Security(Section, frozen=True):
    """Keys, tokens and passwords."""

    secret_key: str
    secret_key_file: str
    token_seconds: Positive
    password_threads: Positive


class Domains(Section, frozen=True):
    """Sender domains."""

    require_verified: bool


class Limits(Section, frozen=True):
    """How much at once."""

    request_rate: Positive
    request_burst: Positive
    accept_seconds: Positive
    accept_waiting: Positive


class Logs(Section, frozen=True):
    """What the service writes about itself."""

    format: Literal["json", "console"]
    level: Literal["debug", "info", "warning", "error"]


class Settings(Section, frozen=True):
    """Every setting of the service."""

    database: Database
    http: Http
    security: Security
    domains: Domains
    limits: Limits
    logs: Logs


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
        _lay_over(tables, _read(file), source=str(file))
    _lay_over(tables, _from_environment(environment, tables), source="environment")
    _lay_over(tables, overrides or {}, source="command line")
    try:
        settings = msgspec.convert(tables, Settings)
    except msgspec.ValidationError as problem:
        raise ConfigError(_explain(str(problem), tables)) from None
    _refuse_impossible(settings)
    return settings


def defaults() -> dict[str, dict[str, Any]]:
    """Every setting by section and key, with its default."""
    return tomllib.loads(resources.files(__package__).joinpath("defaults.toml").read_text(encoding="utf-8"))


def has_variables(environment: Mapping[str, str]) -> bool:
    """Whether the environment holds any setting."""
    return any(_is_setting(variable) for variable in environment)


def endpoint(text: str, *, name: str) -> Endpoint:
    """`host:port`, with an IPv6 host in brackets (RFC 3986 section 3.2.2)."""
    host, _, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not (_is_ipv6(host[1:-1]) if bracketed else _HOST_NAME.fullmatch(host)):
        msg = f"{name}: {text!r} is not an address; write host:port, for example 127.0.0.1:8025 or [::1]:8025"
        raise ConfigError(msg)
    if not (port.isascii() and port.isdigit() and int(port) <= HIGHEST_PORT):
        msg = f"{name}: {text!r} has no port between 0 and {HIGHEST_PORT}; write host:port, for example 127.0.0.1:8025"
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


def _refuse_impossible(settings: Settings) -> None:
    """What a type cannot say."""
    if not settings.database.url.startswith(DATABASE_SCHEMES) or settings.database.url == "sqlite:///":
        # The value is not repeated: it may hold a password.
        raise ConfigError("database.url: write sqlite:///path/to/file.db or postgresql://user:password@host/name")
    endpoint(settings.http.listen, name="http.listen")
    address = settings.http.base_url
    if address and not _is_base_url(address):
        msg = (
            f"http.base_url: {address!r} is not an address; write http:// or https://, a host, and no slash at the end"
        )
        raise ConfigError(msg)
    if settings.security.secret_key and settings.security.secret_key_file:
        raise ConfigError("security: secret_key and secret_key_file are both set; keep one of them")


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


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        msg = f"{file}: cannot be read: {problem.strerror}"
        raise ConfigError(msg) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        msg = f"{file}: not valid TOML: {problem}"
        raise ConfigError(msg) from None


def _is_setting(variable: str) -> bool:
    return variable.startswith(PREFIX) and "__" in variable


def _from_environment(environment: Mapping[str, str], tables: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for variable, value in sorted(environment.items()):
        if _is_setting(variable):
            section, _, key = variable.removeprefix(PREFIX).lower().partition("__")
            default = tables.get(section, {}).get(key, "")
            found.setdefault(section, {})[key] = _typed(value, default, name=f"{section}.{key}")
    return found


def _typed(value: str, default: object, *, name: str) -> object:
    """The environment knows only text; it takes the type of the default."""
    if isinstance(default, str):
        return value
    try:
        return msgspec.convert(value, type(default), strict=False)
    except msgspec.ValidationError:
        msg = f"{name}: {value!r} is not {'true or false' if isinstance(default, bool) else 'a whole number'}"
        raise ConfigError(msg) from None


def _lay_over(tables: dict[str, dict[str, Any]], changes: Mapping[str, Any], *, source: str) -> None:
    for section, values in changes.items():
        if section not in tables:
            raise ConfigError(f"{section}: unknown section (in {source}); known are {', '.join(tables)}")
        if not isinstance(values, Mapping):
            raise ConfigError(
                f"{section}: a section, not a setting (in {source}); write [{section}] and its settings below"
            )
        for key, value in values.items():
            if key not in tables[section]:
                msg = f"{section}.{key}: unknown setting (in {source}); known are {', '.join(tables[section])}"
                raise ConfigError(msg)
            tables[section][key] = value


def _explain(problem: str, tables: Mapping[str, Mapping[str, object]]) -> str:
    """A validator's words as a sentence that names the setting."""
    text, _, place = problem.partition(" - at `$.")
    section, _, key = place.rstrip("`").partition(".")
    allowed = get_args(Settings.__annotations__[section].__annotations__[key])
    if text.startswith("Invalid enum value"):
        return f"{section}.{key}: {tables[section][key]!r} is not one of {', '.join(allowed)}"
    return f"{section}.{key}: {text[0].lower()}{text[1:]}"
