"""Who computes RSA signatures: a few threads of this process, or processes of their own.

OpenSSL lets other threads run while it signs, so threads will do. AWS-LC is almost twice as fast but keeps the
interpreter to itself, so it gets processes. The signatures are the same bytes: PKCS #1 v1.5 has no randomness.
"""

import asyncio
from concurrent import futures
from typing import Final, Literal, Protocol

from postroad.services import domain_keys, recent, signer_processes, signer_worker

# Some 5 KB each. Loading one that had to go takes microseconds.
MOST_KEYS: Final = 1_000


class Signers(Protocol):
    """Sign the SHA-256 digest of something with a key (PKCS #1 v1.5)."""

    async def sign(self, key: domain_keys.SigningKey, digest: bytes) -> bytes:
        """The signature, or SigningFailed."""
        ...

    async def close(self) -> None:
        """Stop; what has not been signed will not be."""
        ...


class ThreadSigners:
    """Threads with OpenSSL."""

    def __init__(self, workers: int) -> None:
        self._threads = futures.ThreadPoolExecutor(workers, thread_name_prefix="signer")
        # By the whole private key: no two domains can be mistaken for each other.
        self._loaded: recent.Recent[bytes, signer_worker.Signer] = recent.Recent(MOST_KEYS)

    async def sign(self, key: domain_keys.SigningKey, digest: bytes) -> bytes:
        signer = self._loaded.get(key.private_key)
        if signer is None:
            try:
                signer = signer_worker.with_cryptography(key.private_key)
            except (ValueError, TypeError) as problem:
                raise signer_processes.SigningFailed(f"the key {key.selector} cannot be used") from problem
            self._loaded.put(key.private_key, signer)
        return await asyncio.get_running_loop().run_in_executor(self._threads, signer, digest)

    async def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


def choose(kind: Literal["auto", "threads", "processes"], *, workers: int) -> Signers:
    """The signers that the settings ask for."""
    if kind == "processes" or (kind == "auto" and signer_worker.is_fast()):
        return signer_processes.ProcessSigners(workers)
    return ThreadSigners(workers)
