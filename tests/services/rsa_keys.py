"""RSA keys for tests of signers, and what their signatures have to be."""

import hashlib

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils

from postroad.mail.signing import domain_keys

UNUSABLE = domain_keys.SigningKey("broken", b"not a key")


def make(selector: str, *, bits: int = 1024) -> domain_keys.SigningKey:
    """A key; smaller ones than ours are made and used much faster."""
    private = rsa.generate_private_key(65537, bits)
    der = private.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return domain_keys.SigningKey(selector, der)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def is_signed(key: domain_keys.SigningKey, text: str, signature: bytes) -> bool:
    """Whether this is the key's signature of the text by OpenSSL; there is only one."""
    private = serialization.load_der_private_key(key.private_key, None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(private, rsa.RSAPrivateKey)
    return private.sign(digest(text), padding.PKCS1v15(), utils.Prehashed(hashes.SHA256())) == signature
