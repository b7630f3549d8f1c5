"""The section of the dashboard."""

from typing import Annotated

import msgspec

from postroad.config import addresses
from postroad.config.section import Section


class Dashboard(Section, frozen=True):
    """The dashboard."""

    enabled: bool
    session_hours: Annotated[int, msgspec.Meta(ge=1, le=8760)]
    session_days: Annotated[int, msgspec.Meta(ge=1, le=365)]
    audit_log_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)]
    remote_images: bool
    spamd: str

    def __post_init__(self) -> None:
        """Refuse an address that is neither a path nor `host:port`."""
        if self.spamd and not self.spamd.startswith("/"):
            addresses.remote(self.spamd, name="dashboard.spamd")
