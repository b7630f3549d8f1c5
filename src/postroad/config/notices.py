"""The section `notices`: what Postroad tells by mail, and where else."""

from typing import Annotated

import msgspec

from postroad.config.section import Section
from postroad.config.sources import ConfigError


class Notices(Section, frozen=True):
    """Notices to operators and owners."""

    webhook_url: str
    digest_hour: Annotated[int, msgspec.Meta(ge=0, le=23)]
    queue_minutes: Annotated[int, msgspec.Meta(ge=0, le=100_000)]

    def check(self) -> None:
        if self.webhook_url and not self.webhook_url.startswith(("https://", "http://")):
            # The URL of such a webhook is a secret.
            raise ConfigError("notices.webhook_url: is not a URL; write https:// and a host and a path")
