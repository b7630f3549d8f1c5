"""A process that does nothing but RSA signatures (PKCS #1 v1.5 with SHA-256), for `signer_processes.py`.

It is started with a pipe at either end. Keys and digests come in on one, signatures go out on the other in the same
order; keys come by no other way. The file is run by its path and imports nothing of the house. The process is nice to
the rest of the system, and it ends when its input ends: with its parent, however that goes. Signals for the whole
group are not for it.
"""

import functools
import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import Final

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
BATCH_SIZE: Final = 8
READ_BYTES: Final = 65_536

Signer = Callable[[bytes], bytes]


def serve(read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
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
    """A key that cannot be loaded signs nothing; that is said to those who want it, and disturbs no one else."""
    try:
        return load(private_key)
    except RuntimeError:  # AWS-LC has no other
        return lambda _digest: b""


def load(private_key: bytes) -> Signer:
    """A key (PKCS #1 in DER) for AWS-LC, which proves its parts first and lets no other thread run while it signs."""
    # Here, because the service imports this file too, and need not spend 80 ms and 7 MB on what it never calls.
    import awscrt.crypto  # noqa: PLC0415

    key = awscrt.crypto.RSA.new_private_key_from_der_data(private_key)
    algorithm = awscrt.crypto.RSASignatureAlgorithm.PKCS1_5_SHA256

    def sign(digest: bytes) -> bytes:
        signature: bytes = key.sign(algorithm, digest)
        return signature

    return sign


def main() -> None:
    """Serve the process that started this one."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    serve(
        functools.partial(os.read, sys.stdin.fileno(), READ_BYTES),
        functools.partial(os.write, sys.stdout.fileno()),
    )


if __name__ == "__main__":
    main()
