"""The section `sso`: single sign-on with the OpenID Connect provider of the installation."""

import ipaddress
from pathlib import Path
from typing import Annotated, Final
from urllib import parse

import msgspec

from postroad.config import addresses
from postroad.config.section import Section
from postroad.config.sources import ConfigError
from postroad.model import caller

# A group may make its people operators, beside the roles of an account.
OPERATOR: Final = "operator"
ROLES: Final = tuple(role.value for role in caller.Role)
GROUP_ROLES: Final = (*ROLES, OPERATOR)
Word = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,200}$")]


class Sso(Section, frozen=True):
    """Single sign-on for the whole installation."""

    issuer: str
    client_id: str
    client_secret: str
    client_secret_file: str
    scopes: tuple[Word, ...]
    email_domains: tuple[str, ...]
    account: str
    role: str
    groups_claim: Word
    groups: dict[str, str]
    passwords: bool
    break_glass: str

    def check(self) -> None:
        if not self.issuer:
            self._check_unused()
            return
        if not is_issuer(self.issuer):
            raise ConfigError(
                f"sso.issuer: {self.issuer!r} is not a URL of a provider; write https:// and a host, without a query; "
                "http:// is for this host only"
            )
        if not self.client_id:
            raise ConfigError("sso.client_id: missing; the provider shows it where Postroad is registered")
        if self.client_secret and self.client_secret_file:
            raise ConfigError("sso: client_secret and client_secret_file are both set; remove one of them")
        for name in self.email_domains:
            if not addresses.is_host_name(name):
                raise ConfigError(f"sso.email_domains: {name!r} is not a domain name")
        self._check_groups()
        if not self.passwords and not self.break_glass:
            raise ConfigError(
                "sso.break_glass: missing; name the operator who may log in with a password when the provider is down"
            )
        addresses.check_mailbox(self.break_glass, name="sso.break_glass", example="operator@example.org")

    def _check_groups(self) -> None:
        if self.role not in ROLES:
            raise ConfigError(f"sso.role: {self.role!r} is not one of {', '.join(ROLES)}")
        for group, role in self.groups.items():
            if role not in GROUP_ROLES:
                raise ConfigError(f"sso.groups: {group!r} is mapped to {role!r}; write one of {', '.join(GROUP_ROLES)}")
        if self.groups and not self.account:
            raise ConfigError("sso.account: missing; sso.groups are roles in this account")

    def _check_unused(self) -> None:
        if not self.passwords:
            raise ConfigError("sso.passwords: nobody could log in; set sso.issuer first")

    def __repr__(self) -> str:
        return f"Sso(issuer={self.issuer!r})"


def sso_client_secret(settings: Sso) -> str:
    """The secret of the client, from the settings or its file; empty for a public client."""
    if not settings.client_secret_file:
        return settings.client_secret
    try:
        return Path(settings.client_secret_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"sso.client_secret_file: {settings.client_secret_file} cannot be read") from None


def is_issuer(text: str) -> bool:
    """Whether this is an issuer (OpenID Connect Discovery 1.0 section 3): an HTTPS URL without query and fragment.

    Plain HTTP is for a provider on this host, such as one of a test.
    """
    try:
        parts = parse.urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or parts.query or parts.fragment or "@" in parts.netloc or not text.isascii() or not text.isprintable():
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_this_host(host))


def _is_this_host(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
