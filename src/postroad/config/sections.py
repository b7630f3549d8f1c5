"""The sections of the configuration and the type of every setting; `defaults.toml` says what each means."""

from typing import Annotated, Final, Literal

import msgspec

MAX_INTEGER: Final = 1_000_000_000
Positive = Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)]
Percent = Annotated[float, msgspec.Meta(gt=0, le=100)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the configuration file."""


class Database(Section, frozen=True):
    """Where the data lives."""

    url: str
    connections: Positive
    migrate_at_start: bool


class Doors(Section, frozen=True):
    """The processes that take mail."""

    processes: Annotated[int, msgspec.Meta(ge=0, le=256)]


class Http(Section, frozen=True):
    """The HTTP door."""

    listen: str
    base_url: str
    trusted_proxies: tuple[str, ...]
    grace_seconds: Positive
    connections: Positive


class Dashboard(Section, frozen=True):
    """Pages for a browser."""

    enabled: bool
    session_hours: Annotated[int, msgspec.Meta(ge=1, le=8760)]
    session_days: Annotated[int, msgspec.Meta(ge=1, le=365)]
    journal_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)]


class Submission(Section, frozen=True):
    """The SMTP door."""

    listen: str
    tls_listen: str
    tls_certificate: str
    tls_key: str
    auth_without_tls: bool
    connections: Positive
    connections_per_address: Positive
    grace_seconds: Positive


class Security(Section, frozen=True):
    """Keys, tokens and passwords."""

    secret_key: str
    secret_key_file: str
    token_seconds: Positive
    password_threads: Positive


class Domains(Section, frozen=True):
    """Sender domains."""

    require_verified: bool
    spf: str
    check_hours: Annotated[int, msgspec.Meta(ge=0, le=8760)]


class Delivery(Section, frozen=True):
    """The engine that brings mail to its destinations."""

    hostname: str
    smarthost: str
    resolvers: tuple[str, ...]
    mx_port: Port
    source_addresses: tuple[str, ...]
    tls: Literal["opportunistic", "required", "off"]
    mta_sts: bool
    dane: bool
    return_path_domain: str
    sign: bool
    signer_workers: Annotated[int, msgspec.Meta(ge=1, le=256)]
    retry_seconds: Annotated[tuple[Positive, ...], msgspec.Meta(max_length=100)]
    suppress: bool
    lease_seconds: Annotated[int, msgspec.Meta(ge=10, le=3600)]
    connections: Positive
    connect_seconds: Positive
    reply_seconds: Positive
    content_seconds: Positive
    idle_seconds: Positive
    grace_seconds: Positive
    poll_milliseconds: Positive


class Pool(Section, frozen=True):
    """How much at once goes to one mailbox provider."""

    connections: Positive
    messages_per_second: Positive
    messages_per_connection: Positive


class Pools(Section, frozen=True):
    """The mailbox providers with a pool of their own, and all others."""

    google: Pool
    microsoft: Pool
    yahoo: Pool
    apple: Pool
    smarthost: Pool
    others: Pool


class Inbound(Section, frozen=True):
    """Mail that comes back to return paths."""

    listen: str
    connections: Positive
    connections_per_address: Positive
    grace_seconds: Positive


class Webhooks(Section, frozen=True):
    """The engine that tells customers what became of their mail."""

    allow_insecure: bool
    allow_private: tuple[str, ...]
    ca_file: str
    retry_seconds: Annotated[tuple[Positive, ...], msgspec.Meta(max_length=6)]
    connections: Positive
    connections_per_account: Positive
    idle_seconds: Positive
    lease_seconds: Annotated[int, msgspec.Meta(ge=10, le=3600)]
    grace_seconds: Positive
    poll_milliseconds: Positive


class Limits(Section, frozen=True):
    """How much at once."""

    request_rate: Positive
    request_burst: Positive
    accept_seconds: Positive
    accept_waiting: Positive
    queued_recipients: Positive


class Warmup(Section, frozen=True):
    """How much a young sender domain may send."""

    enabled: bool
    # A message may have 50 recipients: a day's cap below that would hold some back for ever.
    recipients_per_day: Annotated[
        tuple[Annotated[int, msgspec.Meta(ge=50, le=MAX_INTEGER)], ...], msgspec.Meta(min_length=1, max_length=100)
    ]


class BounceGuard(Section, frozen=True):
    """How much of an account's mail may bounce."""

    enabled: bool
    days: Annotated[int, msgspec.Meta(ge=1, le=90)]
    recipients: Positive
    warn_percent: Percent
    suspend_percent: Percent
    complaint_warn_percent: Percent
    complaint_suspend_percent: Percent
    cooldown_hours: Annotated[int, msgspec.Meta(ge=0, le=8760)]


class Retention(Section, frozen=True):
    """How long mail is kept after its final result."""

    body_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)]
    # Longer than an idempotency key lives, because its replay needs the message.
    message_days: Annotated[int, msgspec.Meta(ge=2, le=36_500)]


class Metrics(Section, frozen=True):
    """Who may read what the service counts."""

    token: str
    listen: str


class Logs(Section, frozen=True):
    """What the service writes about itself."""

    format: Literal["json", "console"]
    level: Literal["debug", "info", "warning", "error"]


class Settings(Section, frozen=True):
    """Every setting of the service."""

    database: Database
    doors: Doors
    http: Http
    dashboard: Dashboard
    submission: Submission
    security: Security
    domains: Domains
    delivery: Delivery
    pools: Pools
    inbound: Inbound
    webhooks: Webhooks
    limits: Limits
    warmup: Warmup
    bounce_guard: BounceGuard
    retention: Retention
    metrics: Metrics
    logs: Logs
