"""An authenticator in software (Web Authentication Level 2, section 6), with ES256 keys.

`create` and `get` answer the options of a ceremony as a browser at `origin` would send it. Each of their arguments is
something that an attacker, or a broken authenticator, would do differently.
"""

import base64
import dataclasses
import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40
ES256 = -7


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(slots=True)
class SoftwareAuthenticator:
    """One credential of one relying party; `count` rises with each use, unless it `counts` nothing."""

    origin: str
    verifies: bool = True
    counts: bool = True
    count: int = 0
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    id: bytes = b""
    user_handle: bytes = b""

    def create(
        self,
        options: Mapping[str, Any],
        *,
        origin: str | None = None,
        rp_id: str | None = None,
        algorithm: int = ES256,
        is_framed: bool = False,
        kind: str = "webauthn.create",
    ) -> str:
        """Make a credential; its id is that of the key, unless it has one."""
        numbers = self.key.public_key().public_numbers()
        x, y = numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")
        self.id = self.id or hashlib.sha256(x + y).digest()
        self.user_handle = decode(options["user"]["id"])
        public_key = cbor2.dumps({1: 2, 3: algorithm, -1: 1, -2: x, -3: y})
        attested = bytes(16) + struct.pack(">H", len(self.id)) + self.id + public_key
        data = self._data(rp_id or options["rp"]["id"], ATTESTED) + attested
        statement = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client_data = self._client_data(kind, options, origin=origin, is_framed=is_framed)
        return self._answer(clientDataJSON=client_data, attestationObject=statement, transports=["internal", "hybrid"])

    def get(
        self,
        options: Mapping[str, Any],
        *,
        origin: str | None = None,
        rp_id: str | None = None,
        credential_id: bytes | None = None,
        user_handle: bytes | None = None,
        is_framed: bool = False,
        kind: str = "webauthn.get",
    ) -> str:
        """Sign a challenge."""
        self.count += self.counts
        data = self._data(rp_id or options["rpId"], 0)
        client_data = self._client_data(kind, options, origin=origin, is_framed=is_framed)
        signature = self.key.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            credential_id,
            clientDataJSON=client_data,
            authenticatorData=data,
            signature=signature,
            userHandle=self.user_handle if user_handle is None else user_handle,
        )

    def copied(self) -> "SoftwareAuthenticator":
        """The same credential in other hands, which counts from where it was copied."""
        return dataclasses.replace(self)

    def _data(self, rp_id: str, flags: int) -> bytes:
        flags |= PRESENT | (VERIFIED if self.verifies else 0)
        return hashlib.sha256(rp_id.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client_data(self, kind: str, options: Mapping[str, Any], *, origin: str | None, is_framed: bool) -> bytes:
        said = {"type": kind, "challenge": options["challenge"], "origin": origin or self.origin}
        return json.dumps({**said, "crossOrigin": is_framed}).encode()

    def _answer(self, credential_id: bytes | None = None, **response: Any) -> str:
        shown = encode(self.id if credential_id is None else credential_id)
        encoded = {name: encode(value) if isinstance(value, bytes) else value for name, value in response.items()}
        return json.dumps({"id": shown, "rawId": shown, "type": "public-key", "response": encoded})
