"""The section `operator`: who runs this installation, and how mail reaches them."""

import msgspec

from postroad.config import addresses
from postroad.config.section import Section


class Operator(Section, frozen=True):
    """The people who run this installation."""

    email: str
    sender: str = msgspec.field(name="from")

    @property
    def is_reachable(self) -> bool:
        """Whether mail can be sent to them."""
        return bool(self.email and self.sender)

    def check(self) -> None:
        for key, text in (("email", self.email), ("from", self.sender)):
            addresses.check_mailbox(text, name=f"operator.{key}", example="postmaster@example.org")
