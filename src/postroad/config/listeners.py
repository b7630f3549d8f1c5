"""The rules of listeners that concern several sections: no two have one address, and which use the certificate."""

import itertools
from typing import Final

from postroad.config import addresses
from postroad.config.sections import Settings
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


HTTPS_PORT: Final = 443
# How an ACME authority validates names (RFC 8555 section 8.3, RFC 8737).
HTTP_01: Final = "http-01"
TLS_ALPN_01: Final = "tls-alpn-01"


def tls_sections(settings: Settings) -> tuple[str, ...]:
    """The sections whose listeners use the certificate, which is in files or obtained by ACME."""
    if not (settings.tls.certificate or settings.acme.names):
        return ()
    is_used = {
        "http": settings.http.tls,
        "submission": bool(settings.submission.listen or settings.submission.tls_listen),
        "inbound": bool(settings.inbound.listen),
    }
    return tuple(section for section, has_tls in is_used.items() if has_tls)


def serves_https(settings: Settings) -> bool:
    """Whether `http.listen` itself uses TLS."""
    return "http" in tls_sections(settings)


def acme_challenge(settings: Settings) -> str:
    """How the authority validates names: on port 80 if this service or a proxy answers there, or else on port 443."""
    return TLS_ALPN_01 if serves_https(settings) and not settings.http.redirect_listen else HTTP_01


def public_url(settings: Settings) -> str:
    """The URL of the service, as far as the settings name it; otherwise empty."""
    if settings.http.base_url or not (settings.acme.names and settings.http.tls):
        return settings.http.base_url
    port = addresses.endpoint(settings.http.listen, name="http.listen").port
    return f"https://{settings.acme.names[0]}" + (f":{port}" if port != HTTPS_PORT else "")


def local_url(settings: Settings) -> str:
    """The URL of the listen address."""
    return f"{'https' if serves_https(settings) else 'http'}://{settings.http.listen}"


def base_url(settings: Settings) -> str:
    """The URL of the service for links, from the settings and never from a request; no slash at its end."""
    return (public_url(settings) or local_url(settings)).rstrip("/")


def check_tls(settings: Settings) -> None:
    """Raise ConfigError if a listener cannot do with the certificate what is asked of it."""
    if settings.tls.certificate and settings.acme.names:
        raise ConfigError("tls.certificate and acme.names are both set; remove one of them")
    _check_http(settings)
    _check_submission(settings)


def _check_http(settings: Settings) -> None:
    if serves_https(settings) and settings.http.base_url.startswith("http://"):
        raise ConfigError("http.base_url: begins with http://, but http.listen serves HTTPS; write https://")
    if settings.http.redirect_listen and not serves_https(settings):
        raise ConfigError(
            "http.redirect_listen: redirects to HTTPS, which http.listen does not serve; "
            "set tls.certificate and tls.key, or acme.names"
        )
    if settings.http.redirect_listen and not public_url(settings):
        raise ConfigError("http.redirect_listen: set http.base_url, to which it redirects")
    if settings.acme.names and settings.http.tls and settings.http.trusted_proxies:
        raise ConfigError(
            "http.tls: must be false when acme.names and http.trusted_proxies are both set, because the proxy "
            "terminates TLS; the certificate is then used for SMTP only"
        )


def _check_submission(settings: Settings) -> None:
    chosen = settings.submission
    if "submission" in tls_sections(settings):
        return
    if chosen.tls_listen:
        raise ConfigError("submission.tls_listen: requires tls.certificate and tls.key, or acme.names")
    if chosen.listen and not chosen.auth_without_tls:
        raise ConfigError(
            "submission.listen: clients cannot authenticate without TLS; set tls.certificate and tls.key, "
            "or acme.names, or set auth_without_tls = true on a trusted network"
        )
