"""Settings with their secrets masked."""

import re
from typing import Any, Final

import msgspec

from postroad import config

MASK: Final = "***"
_PASSWORD_PARAMETER = re.compile(r"([?&][a-z]*password=)[^&]*", re.IGNORECASE)


def address(url: str) -> str:
    """A database URL without its password, which may contain any character: it extends to the last `@`."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        return url
    user_info, at, host = rest.rpartition("@")
    user, colon, _ = user_info.partition(":")
    shown = f"{user}:{MASK}" if colon else user_info
    return _PASSWORD_PARAMETER.sub(rf"\1{MASK}", f"{scheme}://{shown}{at}{host}")


def settings(effective: config.Settings) -> dict[str, Any]:
    """All settings by section and key, with secrets masked."""
    tables: dict[str, Any] = msgspec.to_builtins(effective)
    tables["database"]["url"] = address(effective.database.url)
    if effective.security.secret_key:
        tables["security"]["secret_key"] = MASK
    if effective.metrics.token:
        tables["metrics"]["token"] = MASK
    if effective.notices.webhook_url:
        tables["notices"]["webhook_url"] = MASK
    for upstream in tables["upstreams"]:
        if upstream["password"]:
            upstream["password"] = MASK
    return tables
