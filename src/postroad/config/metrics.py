"""The section of `/metrics`."""

import re

from postroad.config import addresses
from postroad.config.section import Section
from postroad.config.sources import ConfigError

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
