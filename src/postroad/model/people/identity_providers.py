"""Single sign-on: how Postroad is registered at a provider, what it publishes, and whom it vouches for."""

from dataclasses import dataclass, field

import msgspec


@dataclass(frozen=True, slots=True)
class Registration:
    """How Postroad is registered at a provider; `is_trusted` for the one that the operator has chosen."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    is_trusted: bool

    @property
    def cache_key(self) -> str:
        """What is fetched under different rules is kept apart."""
        return f"{self.is_trusted} {self.issuer}"


class Metadata(msgspec.Struct, frozen=True):
    """The discovery document (OpenID Connect Discovery 1.0 section 3, RFC 9207 section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Person(msgspec.Struct, frozen=True):
    """Whom a provider vouches for. `email` is None unless the provider says that it is verified."""

    issuer: str
    subject: str
    email: str | None
    has_email: bool
    groups: tuple[str, ...]
