"""A process that does nothing but RSA signatures (PKCS #1 v1.5 with SHA-256), for `signer_processes.py`.

It is started with a pipe at either end. Keys and digests come in on one, signatures go out on the other in the same
order; keys come by no other way. The file is run by its path and imports nothing of the house. The process is nice to
the rest of the system, and it ends when its input ends: with its parent, however that goes. Signals for the whole
group are not for it.
"""

import functools
import importlib
import importlib.util
import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils

# What is asked, for which slot of the table of keys, and how many octets follow.
REQUEST: Final = struct.Struct(">BHH")
KEY: Final = 1
DIGEST: Final = 2
# How many octets of a signature follow; none when the key is of no use.
ANSWER: Final = struct.Struct(">H")
# Signatures can wait a moment longer than those who knock at the doors.
NICENESS: Final = 5
# Each write wakes the parent, which sends more while the rest of what it sent is being signed. It stays below the 4,096
# octets that a pipe takes in one piece.
AT_ONCE: Final = 4
READ_BYTES: Final = 65_536

Signer = Callable[[bytes], bytes]
Load = Callable[[bytes], Signer]


def serve(read: Callable[[], bytes], write: Callable[[bytes], object], *, load: Load) -> None:
    """Answer until the input ends; a few signatures go in one write while there are more to do."""
    signers: dict[int, Signer] = {}
    received = b""
    while chunk := read():
        received += chunk
        answers: list[bytes] = []
        while len(received) >= REQUEST.size:
            kind, slot, length = REQUEST.unpack_from(received)
            end = REQUEST.size + length
            if len(received) < end:
                break
            content, received = received[REQUEST.size : end], received[end:]
            if kind == KEY:
                signers[slot] = usable(load, content)
                continue
            signature = signers[slot](content)
            answers.append(ANSWER.pack(len(signature)) + signature)
            if len(answers) == AT_ONCE:
                write(b"".join(answers))
                answers.clear()
        if answers:
            write(b"".join(answers))


def usable(load: Load, private_key: bytes) -> Signer:
    """A key that cannot be loaded signs nothing; that is said to those who want it, and disturbs no one else."""
    try:
        return load(private_key)
    except (ValueError, TypeError, RuntimeError):  # AWS-LC raises the last one
        return lambda _digest: b""


def with_awscrt(private_key: bytes) -> Signer:
    """Load a key for AWS-LC, which signs almost twice as fast as OpenSSL but lets no other thread run meanwhile."""
    crypto = importlib.import_module("awscrt.crypto")
    key, algorithm = crypto.RSA.new_private_key_from_der_data(private_key), crypto.RSASignatureAlgorithm.PKCS1_5_SHA256

    def sign(digest: bytes) -> bytes:
        signature: bytes = key.sign(algorithm, digest)
        return signature

    return sign


def with_cryptography(private_key: bytes) -> Signer:
    """Load a key for OpenSSL. Its parts are not proven again, which would take 0.2 s: it is one of our own."""
    key = serialization.load_der_private_key(private_key, None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError("not an RSA key")
    scheme, hashed = padding.PKCS1v15(), utils.Prehashed(hashes.SHA256())
    return lambda digest: key.sign(digest, scheme, hashed)


def is_fast() -> bool:
    """Whether the faster library is there."""
    return importlib.util.find_spec("awscrt") is not None


def main() -> None:
    """Serve the process that started this one."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    serve(
        functools.partial(os.read, sys.stdin.fileno(), READ_BYTES),
        functools.partial(os.write, sys.stdout.fileno()),
        load=with_awscrt if is_fast() else with_cryptography,
    )


if __name__ == "__main__":
    main()
