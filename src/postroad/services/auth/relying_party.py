"""The relying party of Web Authentication, which passkeys are created for: from the configured URL, never from a Host.

A passkey belongs to the host name. Where that changes, browsers no longer offer the passkeys of the old one, and we
refuse them (docs/second-factor.md).
"""

from typing import Final
from urllib import parse

import msgspec

from postroad import config
from postroad.config import addresses

LOCAL_HOST: Final = "localhost"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class RelyingParty(msgspec.Struct, frozen=True):
    """`id` is a host name; `origin` is that of our pages, as browsers write it."""

    id: str
    origin: str


def of(settings: config.Settings) -> RelyingParty | None:
    """The relying party of the configured URL; without one, localhost. None where browsers have no passkeys.

    They have them for host names, not addresses, on pages with TLS or on localhost (sections 5.1.3 and 5.1.4.1).
    """
    public = config.public_url(settings)
    parts = parse.urlsplit(public or config.local_url(settings))
    host = (parts.hostname or "") if public else LOCAL_HOST
    if addresses.is_address(host) or (parts.scheme != "https" and host != LOCAL_HOST):
        return None
    port = "" if parts.port in {None, _DEFAULT_PORTS[parts.scheme]} else f":{parts.port}"
    return RelyingParty(host, f"{parts.scheme}://{host}{port}")
