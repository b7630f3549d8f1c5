"""No two listeners have one address: the second could not start, and would blame another process."""

import itertools
from typing import Final

from postroad.config import addresses
from postroad.config.sections import Settings
from postroad.config.sources import ConfigError

# They stand for all addresses; the second for those of IPv4 too.
_ALL_IPV4: Final = "0.0.0.0"  # noqa: S104 - compared, not bound
_ALL: Final = "::"


def check(settings: Settings) -> None:
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
