"""A process that only computes RSA signatures (PKCS #1 v1.5 with SHA-256), for `signer_pool.py`.

It has a pipe at either end. Keys and digests arrive on one, signatures leave on the other in the same order; keys
arrive in no other way. The file is run by its path and imports nothing of the package. The process has a low priority,
ends when its input ends, and ignores signals to the process group.
"""

import functools
import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import Final

# The kind of request, its slot in the key table, and how many octets follow.
REQUEST: Final = struct.Struct(">BHH")
KEY: Final = 1
DIGEST: Final = 2
# How many octets of a signature follow; none when the key is unusable.
ANSWER: Final = struct.Struct(">H")
# Signatures can wait a moment longer than incoming connections.
NICENESS: Final = 5
# Each write wakes the parent, which sends more while the rest is being signed. It stays below the 4,096 octets that a
# pipe writes atomically.
BATCH_SIZE: Final = 8
READ_BYTES: Final = 65_536

Signer = Callable[[bytes], bytes]


def serve(read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
    """Respond until the input ends; a few signatures share one write while more are pending."""
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
                signers[slot] = load_or_null(content)
                continue
            signature = signers[slot](content)
            answers.append(ANSWER.pack(len(signature)) + signature)
            if len(answers) == BATCH_SIZE:
                write(b"".join(answers))
                answers.clear()
        if answers:
            write(b"".join(answers))


def load_or_null(private_key: bytes) -> Signer:
    """The key, or None if it cannot be loaded: only its own requests fail."""
    try:
        return load(private_key)
    except RuntimeError:  # AWS-LC has no other
        return lambda _digest: b""


def load(private_key: bytes) -> Signer:
    """Load a key (PKCS #1 in DER) with AWS-LC, which validates it first and holds the GIL while it signs."""
    # Imported here because the service imports this file too, and need not spend 80 ms and 7 MB on it.
    import awscrt.crypto  # noqa: PLC0415

    key = awscrt.crypto.RSA.new_private_key_from_der_data(private_key)
    algorithm = awscrt.crypto.RSASignatureAlgorithm.PKCS1_5_SHA256

    def sign(digest: bytes) -> bytes:
        signature: bytes = key.sign(algorithm, digest)
        return signature

    return sign


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    serve(
        functools.partial(os.read, sys.stdin.fileno(), READ_BYTES),
        functools.partial(os.write, sys.stdout.fileno()),
    )


if __name__ == "__main__":
    main()
