"""The section `acme`: certificates from a certificate authority (ACME, RFC 8555)."""

from typing import Annotated, Literal

import msgspec

from postroad.config import addresses
from postroad.config.section import Section
from postroad.config.sources import ConfigError


class Acme(Section, frozen=True):
    """Certificates that the service obtains by itself."""

    # Authorities accept up to 100 names in a certificate.
    names: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)]
    email: str
    directory: str
    challenge: Literal["http-01", "tls-alpn-01"]
    ca_file: str

    def check(self) -> None:
        for name in self.names:
            if not addresses.is_host_name(name) or addresses.is_address(name) or "." not in name:
                raise ConfigError(f"acme.names: {name!r} is not a public host name; write for example mail.example.com")
        if len({name.lower() for name in self.names}) < len(self.names):
            raise ConfigError("acme.names: a name is listed twice")
        local, _, domain = self.email.rpartition("@")
        if self.email and not (local and addresses.is_host_name(domain)):
            raise ConfigError(f"acme.email: {self.email!r} is not an email address")
        if not (self.directory.startswith("https://") and addresses.is_base_url(self.directory)):
            raise ConfigError(f"acme.directory: {self.directory!r} is not an https:// URL of an ACME directory")
