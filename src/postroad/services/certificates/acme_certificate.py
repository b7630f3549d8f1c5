"""The certificate of `acme.names` as a process knows it: read from the store at intervals, used by all its listeners.

Until the first one is there, listeners with implicit TLS close connections, and the others offer no STARTTLS.
"""

import asyncio
from typing import Final

from postroad import errors
from postroad.network import alpn_challenges, server_tls
from postroad.services import context
from postroad.services.auth import encryption, sealed_values
from postroad.storage import acme, certificates
from postroad.telemetry import logs

TLS_ALPN: Final = "tls-alpn-01"
# How soon a renewed certificate and a challenge are known to all processes.
WATCH_SECONDS: Final = 2.0


class AcmeCertificate(server_tls.MemoryCertificate):
    """The current certificate; one instance per process."""

    def __init__(self, ctx: context.Context, log: logs.Logger) -> None:
        super().__init__()
        self._ctx = ctx
        self._log = log
        self._key = certificates.key_of(ctx.settings.acme.directory, ctx.settings.acme.names)
        self._issued_at = 0
        self.challenges = alpn_challenges.AlpnChallenges()

    async def watch(self, stopping: asyncio.Event) -> None:
        """Follow the store until the process stops. While the store is unavailable, the last state stays."""
        while not stopping.is_set():
            try:
                async with asyncio.timeout(WATCH_SECONDS):
                    await stopping.wait()
            except TimeoutError:
                await self.load()

    async def load(self) -> None:
        """Read the certificate, if it is new, and the pending challenges."""
        try:
            async with self._ctx.store.reading() as tx:
                found = await certificates.find(tx, self._key)
                pending = []
                if self._ctx.settings.acme.challenge == TLS_ALPN:
                    pending = await acme.challenges(tx, TLS_ALPN, now=self._ctx.clock())
        except errors.PostroadError:
            return
        self.challenges.replace({one.name: one.key_authorization for one in pending})
        if found is not None and found.issued_at != self._issued_at:
            self._issued_at = found.issued_at
            self._use(found)

    def _use(self, found: certificates.StoredCertificate) -> None:
        try:
            key = encryption.decrypt(
                self._ctx.keys.encryption, found.private_key, owner=sealed_values.certificate_owner(*self._key)
            )
            self.replace(found.chain.encode(), key)
        except (encryption.DecryptionError, server_tls.CertificateError) as problem:
            self._log.error("certificate_unusable", names=self._key.names, detail=str(problem))
        else:
            self._log.info("certificate_loaded", names=self._key.names)
