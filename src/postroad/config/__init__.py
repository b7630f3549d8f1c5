"""Settings: parsed once, frozen and complete.

`defaults.toml` documents every setting and its default. A file, then variables named `POSTROAD_<SECTION>__<KEY>`, then
flags override it. Unknown keys, wrong types and invalid values are errors that name the setting. A variable without
the double underscore is ignored: orchestrators set names such as `POSTROAD_PORT` by themselves. A field of an entry of
`[[upstreams]]` is `POSTROAD_UPSTREAMS__<NAME>__<FIELD>`, and one of `[[sources]]` likewise.
"""

import tomllib
from collections.abc import Collection, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from postroad.config import entries, listeners, sources, type_errors
from postroad.config.addresses import Endpoint as Endpoint
from postroad.config.addresses import dns_server as dns_server
from postroad.config.addresses import endpoint as endpoint
from postroad.config.addresses import is_address as is_address
from postroad.config.addresses import is_host_name as is_host_name
from postroad.config.entries import Source as Source
from postroad.config.entries import Upstream as Upstream
from postroad.config.entries import check_upstream_files as check_upstream_files
from postroad.config.entries import upstream_credentials as upstream_credentials
from postroad.config.listeners import TLS_ALPN_01 as TLS_ALPN_01
from postroad.config.listeners import acme_challenge as acme_challenge
from postroad.config.listeners import base_url as base_url
from postroad.config.listeners import local_url as local_url
from postroad.config.listeners import public_url as public_url
from postroad.config.listeners import serves_https as serves_https
from postroad.config.listeners import tls_sections as tls_sections
from postroad.config.safety import check_secret_files as check_secret_files
from postroad.config.safety import is_behind_proxy as is_behind_proxy
from postroad.config.safety import secret_files as secret_files
from postroad.config.safety import warnings as warnings
from postroad.config.sections import OPERATOR as OPERATOR
from postroad.config.sections import Delivery as Delivery
from postroad.config.sections import Provider as Provider
from postroad.config.sections import Providers as Providers
from postroad.config.sections import Security as Security
from postroad.config.sections import Settings as Settings
from postroad.config.sections import Sso as Sso
from postroad.config.sections import is_issuer as is_issuer
from postroad.config.sections import sso_client_secret as sso_client_secret
from postroad.config.sources import ConfigError as ConfigError

# An HMAC key shorter than its hash weakens it (RFC 2104 section 3).
INSTALLATION_KEY_BYTES: Final = 32


def load(
    file: Path | None = None,
    *,
    environment: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    is_upgrade: bool = False,
) -> Settings:
    """The settings from the defaults, a file, the environment and overrides, in this order.

    Before an upgrade, settings that no longer exist are ignored, except those that name the database.
    """
    tables = defaults()
    known = {section: dict(tables[section]) for section, _ in sources.WAYS}
    removed: dict[str, str] = {}
    if file is not None:
        sources.merge(tables, sources.read(file), source=str(file), removed=removed)
    variables = sources.from_environment(environment, tables, _entry_defaults())
    for changes, source in ((variables, sources.ENVIRONMENT), (overrides or {}, "command line")):
        sources.forget_overridden(tables, changes, known)
        sources.merge(tables, changes, source=source, removed=removed)
    if removed and not (is_upgrade and not any(name.startswith("database.") for name in removed)):
        raise ConfigError("\n".join(f"{name}: {sentence}" for name, sentence in removed.items()))
    try:
        settings = msgspec.convert(tables, Settings)
    except msgspec.ValidationError as problem:
        raise ConfigError(type_errors.explain(str(problem), tables)) from None
    settings = _with_database_url(settings)
    settings.check()
    listeners.check_tls(settings)
    listeners.check_addresses(settings)
    return settings


def names(file: Path | None, *, environment: Mapping[str, str]) -> Collection[str]:
    """The settings of a file and of the environment as `section.key`, those that no longer exist included."""
    entry_defaults = _entry_defaults()
    given = [sources.read(file)] if file else []
    given.append(sources.from_environment(environment, defaults(), entry_defaults))
    return {name for tables in given for name in sources.names(tables, entry_defaults)}


def _entry_defaults() -> Mapping[str, Mapping[str, object]]:
    return {"upstreams": entries.upstream_defaults(), "sources": entries.source_defaults()}


def defaults() -> dict[str, Any]:
    """Every setting by section and key, with its default; `upstreams`, `routes` and `sources` are lists of tables."""
    return tomllib.loads(defaults_text())


def defaults_text() -> str:
    """The file `defaults.toml`, whose comments explain every setting."""
    return resources.files("postroad").joinpath("defaults.toml").read_text(encoding="utf-8")


def has_variables(environment: Mapping[str, str]) -> bool:
    """Whether the environment contains any setting."""
    return any(sources.is_setting(variable) for variable in environment)


def installation_key(settings: Security) -> bytes:
    """The installation key. Raises ConfigError if it is missing or weak."""
    text = settings.installation_key
    if settings.installation_key_file:
        text = sources.read_file(settings.installation_key_file, name="security.installation_key_file").strip()
    key = text.encode()
    if len(key) < INSTALLATION_KEY_BYTES or len(set(key)) < INSTALLATION_KEY_BYTES // 4:
        raise ConfigError(
            f"security.installation_key: missing or too weak; set at least {INSTALLATION_KEY_BYTES} random bytes, "
            "for example from 'openssl rand -base64 48', in the file, as POSTROAD_SECURITY__INSTALLATION_KEY, "
            "or in the file named by security.installation_key_file"
        )
    return key


def _with_database_url(settings: Settings) -> Settings:
    """The same with the URL from a file, if one is named."""
    given = settings.database
    if not given.url_file:
        return settings
    is_set = given.url != defaults()["database"]["url"]
    sources.check_single_source("database", {"url": is_set, "url_file": given.url_file})
    url = sources.read_file(given.url_file, name="database.url_file").strip()
    return msgspec.structs.replace(settings, database=msgspec.structs.replace(given, url=url))
