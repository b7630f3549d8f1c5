"""The rules of listeners that concern several sections: no two have one address, and whose certificate each uses."""

import itertools
from typing import Final

from postroad.config import addresses
from postroad.config.sections import Http, Inbound, Settings, Submission
from postroad.config.sources import ConfigError

# They stand for all addresses; the second for those of IPv4 too.
_ALL_IPV4: Final = "0.0.0.0"  # noqa: S104 - compared, not bound
_ALL: Final = "::"


def check_addresses(settings: Settings) -> None:
    """Raise ConfigError if two listeners have one address."""
    settings_by_name = {
        "http.listen": settings.http.listen,
        "http.redirect_listen": settings.http.redirect_listen,
        "submission.listen": settings.submission.listen,
        "submission.tls_listen": settings.submission.tls_listen,
        "inbound.listen": settings.inbound.listen,
        "metrics.listen": settings.metrics.listen,
    }
    parsed = [(name, addresses.endpoint(text, name=name)) for name, text in settings_by_name.items() if text]
    for (first_name, first), (second_name, second) in itertools.combinations(parsed, 2):
        if first.port and first.port == second.port and _overlap(first.host.lower(), second.host.lower()):
            raise ConfigError(
                f"{second_name}: {second} is taken by {first_name} ({first}); choose another port for one of them"
            )


def _overlap(first: str, second: str) -> bool:
    hosts = {"127.0.0.1" if host == "localhost" else host for host in (first, second)}
    if len(hosts) == 1 or _ALL in hosts:
        return True
    return _ALL_IPV4 in hosts and not any(":" in host for host in hosts)


# The sections of listeners that can have a certificate.
LISTENERS: Final = ("http", "submission", "inbound")
HTTPS_PORT: Final = 443


def section_of(settings: Settings, listener: str) -> Http | Submission | Inbound:
    """The settings of a listener."""
    sections: dict[str, Http | Submission | Inbound] = {
        "http": settings.http,
        "submission": settings.submission,
        "inbound": settings.inbound,
    }
    return sections[listener]


def uses_acme(settings: Settings, listener: str) -> bool:
    """Whether a listener uses the certificate that the service obtains by itself.

    Trusted proxies terminate TLS in front of `http.listen`, so it needs none.
    """
    if not settings.acme.names or section_of(settings, listener).tls_certificate:
        return False
    is_used = {
        "http": not settings.http.trusted_proxies,
        "submission": bool(settings.submission.listen or settings.submission.tls_listen),
        "inbound": bool(settings.inbound.listen),
    }
    return is_used[listener]


def serves_https(settings: Settings) -> bool:
    """Whether `http.listen` itself uses TLS."""
    return bool(settings.http.tls_certificate) or uses_acme(settings, "http")


def public_url(settings: Settings) -> str:
    """The URL of the service, as far as the settings name it; otherwise empty."""
    if settings.http.base_url or not uses_acme(settings, "http"):
        return settings.http.base_url
    port = addresses.endpoint(settings.http.listen, name="http.listen").port
    return f"https://{settings.acme.names[0]}" + (f":{port}" if port != HTTPS_PORT else "")


def local_url(settings: Settings) -> str:
    """The URL of the listen address."""
    return f"{'https' if serves_https(settings) else 'http'}://{settings.http.listen}"


def check_tls(settings: Settings) -> None:
    """Raise ConfigError if a listener cannot do with its certificate what is asked of it."""
    for listener in LISTENERS:
        section = section_of(settings, listener)
        if bool(section.tls_certificate) != bool(section.tls_key):
            raise ConfigError(f"{listener}: only one of tls_certificate and tls_key is set; set both or neither")
    _check_http(settings)
    _check_submission(settings)
    if settings.acme.names:
        _check_challenge(settings)


def _check_http(settings: Settings) -> None:
    if serves_https(settings) and settings.http.base_url.startswith("http://"):
        raise ConfigError("http.base_url: begins with http://, but http.listen serves HTTPS; write https://")
    if settings.http.redirect_listen and not serves_https(settings):
        raise ConfigError(
            "http.redirect_listen: redirects to HTTPS, which http.listen does not serve; "
            "set tls_certificate and tls_key, or acme.names"
        )
    if settings.http.redirect_listen and not public_url(settings):
        raise ConfigError("http.redirect_listen: set http.base_url, to which it redirects")


def _check_submission(settings: Settings) -> None:
    chosen = settings.submission
    has_certificate = bool(chosen.tls_certificate) or uses_acme(settings, "submission")
    if chosen.tls_listen and not has_certificate:
        raise ConfigError("submission.tls_listen: requires tls_certificate and tls_key, or acme.names")
    if chosen.listen and not has_certificate and not chosen.auth_without_tls:
        raise ConfigError(
            "submission.listen: clients cannot authenticate without TLS; set tls_certificate and tls_key, "
            "or acme.names, or set auth_without_tls = true on a trusted network"
        )


def _check_challenge(settings: Settings) -> None:
    if settings.acme.challenge == "http-01":
        if serves_https(settings) and not settings.http.redirect_listen:
            raise ConfigError(
                "acme.challenge: http-01 is answered on port 80; set http.redirect_listen, for example to [::]:80, "
                "or use tls-alpn-01"
            )
    elif not serves_https(settings):
        raise ConfigError(
            "acme.challenge: tls-alpn-01 is answered by HTTPS on http.listen, which is behind a proxy; use http-01"
        )
