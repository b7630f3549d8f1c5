"""Settings that work but are unsafe: readable secrets, unencrypted passwords, open guards, clients that look alike.

A file with a secret that every user of the system can read is an error: it is no longer secret. The rest is a warning,
because only the operator knows who is in a group and what protects a network.
"""

import ipaddress
import os
import re
import stat
from pathlib import Path
from typing import Final
from urllib import parse

from postroad.config import addresses, listeners
from postroad.config.sections import Settings
from postroad.config.sources import ConfigError

# Where containers mount their secrets, readable by every user inside, of whom there is one.
CONTAINER_SECRETS: Final = Path("/run/secrets")
# Of submissions over implicit TLS (RFC 8314 section 3.3).
TLS_SUBMISSION_PORT: Final = 465
_PASSWORD: Final = re.compile(r"://[^/@]*:[^/@]+@")


def check_secret_files(settings: Settings) -> None:
    """Raise ConfigError if every user of this system can read a file with a secret."""
    for setting, file in secret_files(settings):
        if _is_public(file):
            raise ConfigError(f"{setting}: every user of this system can read {file}; run 'chmod 600 {file}'")


def warnings(settings: Settings, file: Path | None = None) -> list[str]:
    """What is unsafe in the settings, and in the permissions of the file that they are from."""
    found = [
        f"{setting}: the group of {path} can read it; run 'chmod 600 {path}', or change its owner"
        for setting, path in secret_files(settings)
        if _is_open_to_group(path)
    ]
    if file is not None and _has_secrets(settings) and _is_public(file):
        found.append(f"{file} contains secrets, and every user of this system can read it; run 'chmod 600 {file}'")
    is_plain = not listeners.serves_https(settings)
    if is_plain and _is_on_network(settings.http.listen) and not is_behind_proxy(settings):
        found.append(
            "http.listen: keys and passwords cross the network unencrypted; set tls.certificate and tls.key, "
            "or acme.names; or put a proxy with TLS in front and set http.base_url to its https:// URL and "
            "http.trusted_proxies to its address; or listen on 127.0.0.1"
        )
    # Without TLS of our own, such a URL means that every connection is from a proxy.
    if is_plain and settings.http.base_url.startswith("https://") and not settings.http.trusted_proxies:
        found.append(
            "http.trusted_proxies: empty, but http.base_url is that of a proxy: all clients have the proxy's address, "
            'and the failed logins of one throttle all; set it to the address of the proxy, for example ["127.0.0.1"]'
        )
    if settings.submission.auth_without_tls and _is_on_network(settings.submission.listen):
        found.append(
            "submission.auth_without_tls: passwords may cross the network unencrypted; set tls.certificate and tls.key"
        )
    found += [
        f'upstreams.{upstream.name}.tls: "starttls" on port 465, where servers expect TLS at once and every connection '
        'would wait until it times out; set tls = "tls", or port = 587'
        for upstream in settings.upstreams
        if upstream.port == TLS_SUBMISSION_PORT and upstream.tls == "starttls"
    ]
    return found + _unverified_database(settings.database.url) + _opened_guards(settings)


def _unverified_database(url: str) -> list[str]:
    """Without a verified certificate, whoever is between can answer as the database."""
    parts = parse.urlsplit(url)
    options = parse.parse_qs(parts.query)
    named = options.get("host", []) or [parts.netloc.rpartition("@")[2]]
    # A path is that of a Unix socket.
    servers = [server for entry in named for server in entry.split(",") if server and not server.startswith("/")]
    is_remote = not all(addresses.is_loopback(parse.urlsplit(f"//{server}").hostname or "") for server in servers)
    if not is_remote or options.get("sslmode") == ["verify-full"]:
        return []
    return [
        (
            "database.url: the certificate of the database is not verified, so its password and all mail may be read "
            "on the network; add sslmode=verify-full, and sslrootcert with the file of its CA certificate"
        )
    ]


def _opened_guards(settings: Settings) -> list[str]:
    """The settings that let customers reach every host that this one can reach."""
    found = [
        f"{setting}: {entry} allows every address, including this host and its network; list only networks that need it"
        for setting, entries in (
            ("delivery.allow_private", settings.delivery.allow_private),
            ("webhooks.allow_private", settings.webhooks.allow_private),
        )
        for entry in entries
        if addresses.is_network(entry) and not ipaddress.ip_network(entry).prefixlen
    ]
    found += [
        f"http.trusted_proxies: {entry} lets every client forge its IP address, which login throttling, the "
        "allowed IPs of API keys and the log rely on; list only the addresses of your proxies"
        for entry in settings.http.trusted_proxies
        if not ipaddress.ip_network(entry).prefixlen
    ]
    if settings.webhooks.allow_insecure:
        found.append(
            "webhooks.allow_insecure: webhooks may be unencrypted and reach this host and its network; "
            "use webhooks.allow_private instead"
        )
    return found


def is_behind_proxy(settings: Settings) -> bool:
    """Whether the operator says that a proxy is in front of the HTTP listener."""
    is_foreign_tls = settings.http.base_url.startswith("https://") and not listeners.serves_https(settings)
    return bool(settings.http.trusted_proxies) or is_foreign_tls


def secret_files(settings: Settings) -> list[tuple[str, Path]]:
    """The files with secrets, by setting."""
    named = {
        "database.url_file": settings.database.url_file,
        "security.installation_key_file": settings.security.installation_key_file,
        "sso.client_secret_file": settings.sso.client_secret_file,
        "tls.key": settings.tls.key,
    }
    named |= {f"upstreams.{upstream.name}.password_file": upstream.password_file for upstream in settings.upstreams}
    return [(setting, Path(file)) for setting, file in named.items() if file]


def _has_secrets(settings: Settings) -> bool:
    chosen = settings.database
    has_password = not chosen.url_file and _PASSWORD.search(chosen.url) is not None
    has_password = has_password or any(upstream.password for upstream in settings.upstreams)
    has_password = has_password or bool(settings.sso.client_secret)
    return bool(
        settings.security.installation_key or settings.metrics.token or settings.operator.webhook_url or has_password
    )


def _is_public(file: Path) -> bool:
    """Whether every user can read a file: its mode allows it, and so does every folder above it."""
    try:
        real = file.resolve()
        if real.is_relative_to(CONTAINER_SECRETS) or not real.stat().st_mode & stat.S_IROTH:
            return False
        return all(folder.stat().st_mode & stat.S_IXOTH for folder in real.parents)
    except OSError:
        return False  # whoever uses the file reports what is wrong with it


def _is_open_to_group(file: Path) -> bool:
    """Whether a group can read a file of ours. Somebody else's is often read by means of its group."""
    try:
        found = file.stat()
    except OSError:
        return False
    return found.st_uid == os.geteuid() and bool(found.st_mode & stat.S_IRGRP) and not found.st_mode & stat.S_IROTH


def _is_on_network(listen: str) -> bool:
    """Whether a listen address can be reached from other hosts."""
    if not listen:
        return False
    return not addresses.is_loopback(addresses.endpoint(listen, name="listen").host)
