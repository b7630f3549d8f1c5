"""The sections of the configuration: the type of every setting, and the checks that a type cannot express.

`defaults.toml` documents the settings. Messages never quote a value that may hold a secret.
"""

import re
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib import parse

import msgspec

from postroad.config import addresses, entries
from postroad.config import sources as config_sources
from postroad.config.sources import ConfigError
from postroad.model.delivery import providers as model_providers
from postroad.model.people import callers


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the configuration file."""

    def check(self) -> None:
        """Raise ConfigError if values are invalid or contradict each other."""


class Tls(Section, frozen=True):
    """The certificate of all listeners."""

    certificate: str
    key: str

    def check(self) -> None:
        if bool(self.certificate) != bool(self.key):
            raise ConfigError("tls: only one of certificate and key is set; set both or neither")


class Acme(Section, frozen=True):
    """Certificates that the service obtains by itself."""

    # Authorities accept up to 100 names in a certificate.
    names: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)]
    email: str
    directory: str
    ca_file: str

    def check(self) -> None:
        for name in self.names:
            if not addresses.is_host_name(name) or addresses.is_address(name) or "." not in name:
                raise ConfigError(f"acme.names: {name!r} is not a public host name; write for example mail.example.com")
        if len({name.lower() for name in self.names}) < len(self.names):
            raise ConfigError("acme.names: a name is listed twice")
        local, _, domain = self.email.rpartition("@")
        if self.email and not (local and addresses.is_host_name(domain)):
            raise ConfigError(f"acme.email: {self.email!r} is not an email address")
        if not (self.directory.startswith("https://") and addresses.is_base_url(self.directory)):
            raise ConfigError(f"acme.directory: {self.directory!r} is not an https:// URL of an ACME directory")


class Dashboard(Section, frozen=True):
    """The dashboard."""

    enabled: bool
    session_hours: Annotated[int, msgspec.Meta(ge=1, le=8760)]
    audit_log_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)]
    remote_images: bool
    spamd: str

    def __post_init__(self) -> None:
        """Refuse an address that is neither a path nor `host:port`."""
        if self.spamd and not self.spamd.startswith("/"):
            addresses.remote(self.spamd, name="dashboard.spamd")


class Doctor(Section, frozen=True):
    """The checks of the installation."""

    probe_host: str
    blocklists: dict[str, str]

    def check(self) -> None:
        if self.probe_host:
            addresses.remote(self.probe_host, name="doctor.probe_host")
        for zone in self.blocklists:
            if not addresses.is_host_name(zone):
                raise ConfigError(f"doctor.blocklists: {zone!r} is not a domain name")


# A bearer token (RFC 6750 section 2.1).
_TOKEN = re.compile(r"[!-~]{16,1000}")


class Metrics(Section, frozen=True):
    """Access to /metrics."""

    token: str
    listen: str

    def check(self) -> None:
        if self.listen:
            addresses.endpoint(self.listen, name="metrics.listen")
        if self.token and not _TOKEN.fullmatch(self.token):
            raise ConfigError("metrics.token: write at least 16 printable ASCII characters without spaces, or nothing")


class Operator(Section, frozen=True):
    """The people who run this installation."""

    email: str
    sender: str = msgspec.field(name="from")
    webhook_url: str

    @property
    def is_reachable(self) -> bool:
        """Whether mail can be sent to them."""
        return bool(self.email and self.sender)

    def check(self) -> None:
        for key, text in (("email", self.email), ("from", self.sender)):
            addresses.check_mailbox(text, name=f"operator.{key}", example="postmaster@example.org")
        if self.webhook_url and not self.webhook_url.startswith(("https://", "http://")):
            # The URL of such a webhook is a secret.
            raise ConfigError("operator.webhook_url: is not a URL; write https:// and a host and a path")


# A group may make its people operators, beside the roles of an account.
OPERATOR: Final = "operator"
ROLES: Final = tuple(role.value for role in callers.Role)
GROUP_ROLES: Final = (*ROLES, OPERATOR)
Word = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,200}$")]


class Sso(Section, frozen=True):
    """Single sign-on for the whole installation."""

    issuer: str
    client_id: str
    client_secret: str
    client_secret_file: str
    scopes: tuple[Word, ...]
    email_domains: tuple[str, ...]
    account: str
    role: str
    groups_claim: Word
    groups: dict[str, str]
    passwords: bool
    break_glass: str

    def check(self) -> None:
        if not self.issuer:
            if not self.passwords:
                raise ConfigError("sso.passwords: nobody could log in; set sso.issuer first")
            return
        if not is_issuer(self.issuer):
            raise ConfigError(
                f"sso.issuer: {self.issuer!r} is not a URL of a provider; write https:// and a host, without a query; "
                "http:// is for this host only"
            )
        if not self.client_id:
            raise ConfigError("sso.client_id: missing; the provider shows it where Postroad is registered")
        if self.client_secret and self.client_secret_file:
            raise ConfigError("sso: client_secret and client_secret_file are both set; remove one of them")
        for name in self.email_domains:
            if not addresses.is_host_name(name):
                raise ConfigError(f"sso.email_domains: {name!r} is not a domain name")
        self._check_groups()
        if not self.passwords and not self.break_glass:
            raise ConfigError(
                "sso.break_glass: missing; name the operator who may log in with a password when the provider is down"
            )
        addresses.check_mailbox(self.break_glass, name="sso.break_glass", example="operator@example.org")

    def _check_groups(self) -> None:
        if self.role not in ROLES:
            raise ConfigError(f"sso.role: {self.role!r} is not one of {', '.join(ROLES)}")
        for group, role in self.groups.items():
            if role not in GROUP_ROLES:
                raise ConfigError(f"sso.groups: {group!r} is mapped to {role!r}; write one of {', '.join(GROUP_ROLES)}")
        if self.groups and not self.account:
            raise ConfigError("sso.account: missing; sso.groups are roles in this account")

    def __repr__(self) -> str:
        return f"Sso(issuer={self.issuer!r})"


def sso_client_secret(settings: Sso) -> str:
    """The secret of the client, from the settings or its file; empty for a public client."""
    if not settings.client_secret_file:
        return settings.client_secret
    try:
        return Path(settings.client_secret_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"sso.client_secret_file: {settings.client_secret_file} cannot be read") from None


def is_issuer(text: str) -> bool:
    """Whether this is an issuer (OpenID Connect Discovery 1.0 section 3): an HTTPS URL without query and fragment.

    Plain HTTP is for a provider on this host, such as one of a test.
    """
    try:
        parts = parse.urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or parts.query or parts.fragment or "@" in parts.netloc or not text.isascii() or not text.isprintable():
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and addresses.is_loopback(host))


DATABASE_SCHEMES: Final = ("sqlite:///", "postgresql://", "postgres://")
MAX_INTEGER: Final = 1_000_000_000
Positive = Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)]
Percent = Annotated[float, msgspec.Meta(gt=0, le=100)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
# As long as the record of a replaced key stays published.
MIN_ROTATION_DAYS: Final = 7


def _per_address(connections: int, *, share: int) -> int:
    """How many connections one address may have: a share, so that no single one takes all; but enough for a proxy."""
    return max(20, connections // share)


def _is_url(text: str) -> bool:
    """Whether the parts of a URL can be told apart, with the port of each server that it names."""
    try:
        servers = parse.urlsplit(text).netloc.rpartition("@")[2].split(",")
        return all(parse.urlsplit(f"//{server}").port != 0 for server in servers)
    except ValueError:
        return False


class Database(Section, frozen=True):
    """The database."""

    url: str
    url_file: str
    connections: Positive
    migrate_at_start: bool

    def check(self) -> None:
        source = "url_file" if self.url_file else "url"
        if not self.url.startswith("sqlite:") and not _is_url(self.url):
            raise ConfigError(
                f"database.{source}: not a URL; in a password, write [ as %5B and ] as %5D, and a port from 1 to 65535"
            )
        if not self.url.startswith(DATABASE_SCHEMES) or self.url == "sqlite:///":
            raise ConfigError(
                f"database.{source}: write sqlite:///path/to/file.db or postgresql://user:password@host/name"
            )


class Http(Section, frozen=True):
    """The HTTP listener."""

    listen: str
    redirect_listen: str
    base_url: str
    tls: bool
    trusted_proxies: tuple[str, ...]
    drain_seconds: Annotated[int, msgspec.Meta(ge=0, le=3600)]
    processes: Annotated[int, msgspec.Meta(ge=0, le=256)]
    connections: Positive

    def check(self) -> None:
        addresses.endpoint(self.listen, name="http.listen")
        if self.redirect_listen:
            addresses.endpoint(self.redirect_listen, name="http.redirect_listen")
        if self.base_url and not addresses.is_base_url(self.base_url):
            raise ConfigError(
                f"http.base_url: {self.base_url!r} is not a URL; "
                "write http:// or https:// and a host, without a trailing slash"
            )
        addresses.check_networks(self.trusted_proxies, name="http.trusted_proxies", examples="127.0.0.1 or 10.0.0.0/8")

    @property
    def connections_per_address(self) -> int:
        return _per_address(self.connections, share=8)


class Submission(Section, frozen=True):
    """The SMTP submission listeners."""

    listen: str
    tls_listen: str
    auth_without_tls: bool
    connections: Positive

    def check(self) -> None:
        for key, text in (("listen", self.listen), ("tls_listen", self.tls_listen)):
            if text:
                addresses.endpoint(text, name=f"submission.{key}")

    @property
    def connections_per_address(self) -> int:
        return _per_address(self.connections, share=5)


class Security(Section, frozen=True):
    """Keys, tokens and passwords."""

    installation_key: str
    installation_key_file: str
    operator_second_factor: bool
    confirmation_minutes: Annotated[int, msgspec.Meta(ge=1, le=20_160)]

    def check(self) -> None:
        given = {name: getattr(self, name) for name in ("installation_key", "installation_key_file")}
        config_sources.check_single_source("security", given)


class Shutdown(Section, frozen=True):
    """The end of the service."""

    grace_seconds: Positive


class Credits(Section, frozen=True):
    """What mail costs."""

    enabled: bool


class Domains(Section, frozen=True):
    """Sender domains."""

    require_verified: bool
    spf: str
    check_hours: Annotated[int, msgspec.Meta(ge=0, le=8760)]
    # Names below it have a selector and an id, and no name has more than 253 characters.
    key_zone: Annotated[str, msgspec.Meta(max_length=200)]
    key_rotation_days: Annotated[int, msgspec.Meta(ge=0, le=3650)]

    def check(self) -> None:
        if self.key_zone and not addresses.is_host_name(self.key_zone):
            raise ConfigError(f"domains.key_zone: {self.key_zone!r} is not a domain name")
        # A replaced key stays published for a week.
        if 0 < self.key_rotation_days <= MIN_ROTATION_DAYS:
            raise ConfigError(f"domains.key_rotation_days: must exceed {MIN_ROTATION_DAYS}, or be 0")


class Delivery(Section, frozen=True):
    """The delivery engine."""

    hostname: str
    resolvers: tuple[str, ...]
    mx_port: Port
    allow_private: tuple[str, ...]
    tls: Literal["opportunistic", "required", "off"]
    mta_sts: bool
    dane: bool
    return_path_domain: str
    retry_seconds: Annotated[tuple[Positive, ...], msgspec.Meta(max_length=100)]
    connections: Positive

    def check(self) -> None:
        self._check_names()
        if not self.retry_seconds:
            raise ConfigError("delivery.retry_seconds: empty; set at least one delay in seconds")

    def _check_names(self) -> None:
        for resolver in self.resolvers:
            addresses.dns_server(resolver)
        addresses.check_networks(self.allow_private, name="delivery.allow_private", examples="10.1.0.0/16 or fd00::/8")
        for key, text in (("hostname", self.hostname), ("return_path_domain", self.return_path_domain)):
            if text and not addresses.is_host_name(text):
                raise ConfigError(f"delivery.{key}: {text!r} is not a host name")


class Provider(Section, frozen=True):
    """The limits of one provider queue."""

    connections: Positive
    messages_per_second: Positive
    messages_per_connection: Positive


class Providers(Section, frozen=True):
    """The mailbox providers with limits of their own, and all others."""

    google: Provider
    microsoft: Provider
    yahoo: Provider
    apple: Provider
    others: Provider


class Inbound(Section, frozen=True):
    """The listener for what comes back: bounces, complaints, reports and mail to routes."""

    listen: str
    connections: Positive
    complaint_reporters: tuple[str, ...]

    def check(self) -> None:
        if self.listen:
            addresses.endpoint(self.listen, name="inbound.listen")
        for reporter in self.complaint_reporters:
            if not addresses.is_host_name(reporter.rpartition("@")[2]):
                raise ConfigError(f"inbound.complaint_reporters: {reporter!r} is neither an address nor a domain")

    @property
    def connections_per_address(self) -> int:
        return _per_address(self.connections, share=10)


class Webhooks(Section, frozen=True):
    """The webhook engine."""

    allow_insecure: bool
    allow_private: tuple[str, ...]
    ca_file: str
    retry_seconds: Annotated[tuple[Positive, ...], msgspec.Meta(max_length=6)]
    connections: Positive

    @property
    def connections_per_account(self) -> int:
        """As many as one endpoint needs for hundreds of events a second, and enough for others to have a share."""
        return max(20, self.connections // 10)

    def check(self) -> None:
        addresses.check_networks(
            self.allow_private,
            name="webhooks.allow_private",
            examples="10.1.0.0/16, hooks.internal or *.internal",
            names_allowed=True,
        )


class Limits(Section, frozen=True):
    """Limits on requests and on the queue."""

    request_rate: Positive
    request_burst: Positive
    queued_recipients: Positive
    min_free_megabytes: Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]
    spool_megabytes: Annotated[int, msgspec.Meta(ge=64, le=MAX_INTEGER)]
    api_rate: Positive


class Quotas(Section, frozen=True):
    """What an account may have; quotas that nobody changes are constants of `usage_limits`."""

    domains: Positive
    users: Positive
    stored_megabytes: Positive


class Warmup(Section, frozen=True):
    """Daily limits of new sender domains and source addresses."""

    enabled: bool
    # A message may have 50 recipients: a lower cap would reject some messages on every day.
    recipients_per_day: Annotated[
        tuple[Annotated[int, msgspec.Meta(ge=50, le=MAX_INTEGER)], ...], msgspec.Meta(min_length=1, max_length=100)
    ]

    source_recipients_per_day: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1, max_length=100)]

    def check(self) -> None:
        for key in ("recipients_per_day", "source_recipients_per_day"):
            if list(getattr(self, key)) != sorted(getattr(self, key)):
                raise ConfigError(f"warmup.{key}: values must not decrease from one day to the next")


class BounceGuard(Section, frozen=True):
    """Bounce and complaint thresholds of accounts."""

    enabled: bool
    days: Annotated[int, msgspec.Meta(ge=1, le=90)]
    recipients: Positive
    warn_percent: Percent
    suspend_percent: Percent
    complaint_warn_percent: Percent
    complaint_suspend_percent: Percent
    cooldown_hours: Annotated[int, msgspec.Meta(ge=0, le=8760)]

    def check(self) -> None:
        if self.warn_percent > self.suspend_percent:
            raise ConfigError("bounce_guard.warn_percent: must not exceed suspend_percent")
        if self.complaint_warn_percent > self.complaint_suspend_percent:
            raise ConfigError("bounce_guard.complaint_warn_percent: must not exceed complaint_suspend_percent")


class Retention(Section, frozen=True):
    """How long mail is kept after it is final."""

    body_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)]
    # Longer than the lifetime of an idempotency key, because a replay needs the message.
    message_days: Annotated[int, msgspec.Meta(ge=2, le=36_500)]

    def check(self) -> None:
        if self.body_days > self.message_days:
            raise ConfigError("retention.body_days: must not exceed message_days")


class TlsReports(Section, frozen=True):
    """Reports of TLS results to recipient domains."""

    sender: str = msgspec.field(name="from")

    def check(self) -> None:
        addresses.check_mailbox(self.sender, name="tls_reports.from", example="tls-reports@example.org")


class Logs(Section, frozen=True):
    """The log."""

    format: Literal["json", "console"]
    level: Literal["debug", "info", "warning", "error"]


class Testing(Section, frozen=True):
    """What only tests and `postroad dev` change."""

    poll_milliseconds: Positive
    lease_seconds: Annotated[int, msgspec.Meta(ge=10, le=3600)]
    sign: bool
    suppress: bool
    hourly_checks: bool
    accept_seconds: Positive
    accept_waiting: Positive


class Settings(Section, frozen=True):
    """Every setting of the service."""

    upstreams: tuple[entries.Upstream, ...]
    routes: tuple[model_providers.RouteRule, ...]
    sources: tuple[entries.Source, ...]
    database: Database
    http: Http
    dashboard: Dashboard
    submission: Submission
    tls: Tls
    acme: Acme
    security: Security
    sso: Sso
    credits: Credits
    domains: Domains
    delivery: Delivery
    providers: Providers
    inbound: Inbound
    webhooks: Webhooks
    limits: Limits
    quotas: Quotas
    warmup: Warmup
    bounce_guard: BounceGuard
    retention: Retention
    tls_reports: TlsReports
    operator: Operator
    doctor: Doctor
    metrics: Metrics
    logs: Logs
    shutdown: Shutdown
    testing: Testing

    def check(self) -> None:
        entries.check_routes(self.upstreams, self.routes)
        entries.check_sources(self.sources, self.routes)
        for key in self.__struct_fields__:
            section = getattr(self, key)
            if isinstance(section, Section):
                section.check()

    @property
    def route_rules(self) -> tuple[model_providers.RouteRule, ...]:
        """The routes, and what applies to all other mail."""
        return model_providers.complete_routes(self.routes, names=[upstream.name for upstream in self.upstreams])
