"""Obtains and renews the certificate of `acme.names`, one host at a time.

The certificate is claimed in the store, so no two hosts order it at once, and a host that dies loses the claim. The
challenges of an order are in the store until it ends, so whichever host the authority asks can answer. The new
certificate, its key and the next renewal are stored in one transaction; until then all hosts use the old one.
"""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from postroad.model import certificate_schedule, times
from postroad.network import server_tls
from postroad.services import context
from postroad.services.auth import encryption, key_check, sealed_values
from postroad.services.certificates import acme_certificate
from postroad.storage import acme, certificates
from postroad.telemetry import logs

if TYPE_CHECKING:
    from postroad.network import acme_client

# Authorities check a name within seconds and issue within a minute.
ORDER_SECONDS: Final = 180
# Longer than an order. A process that dies meanwhile, again and again, does not order more often than this.
CLAIM_DURATION: Final = 15 * 60 * times.SECOND
POLL_SECONDS: Final = 0.5
# By then, all processes have read new TLS-ALPN-01 challenges.
SPREAD_SECONDS: Final = 2 * acme_certificate.WATCH_SECONDS
_EVER: Final = 2**62


class Result(msgspec.Struct, frozen=True):
    """How an order ended: with a certificate, or with an error and the time of the next attempt."""

    expires_at: int = 0
    error: str = ""
    due_at: int = 0


class Renewer:
    """Orders certificates; one instance per process."""

    def __init__(self, ctx: context.Context, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._settings = ctx.settings.acme
        self._key = certificates.key_of(self._settings.directory, self._settings.names)

    async def renew(self, *, is_forced: bool = False) -> Result | None:
        """Order the certificate if it is due, or at once; None if it is not due, or another process orders it."""
        now = self._ctx.clock()
        async with self._ctx.store.transaction() as tx:
            claimed = await certificates.claim(
                tx, self._key, due_by=_EVER if is_forced else now, now=now, until=now + CLAIM_DURATION
            )
        if claimed is None:
            return None
        # Only now, because most processes never order a certificate; in a thread, because it takes a second.
        await asyncio.to_thread(importlib.import_module, "postroad.network.acme_client")
        from postroad.network import acme_client  # noqa: PLC0415

        try:
            async with asyncio.timeout(ORDER_SECONDS):
                chain, key = await self._order()
            return await self._store(chain, key)
        except acme_client.AcmeError as problem:
            return await self._postpone(claimed, str(problem))
        except TimeoutError:
            return await self._postpone(claimed, f"the order was not complete after {ORDER_SECONDS} seconds")
        except server_tls.CertificateError as problem:
            return await self._postpone(claimed, str(problem))
        except asyncio.CancelledError:
            # The service stops: it may go on with the next start.
            async with self._ctx.store.transaction() as tx:
                await certificates.postpone(tx, self._key, due_at=now, error=claimed.error)
            raise

    async def _order(self) -> tuple[str, bytes]:
        from postroad.network import acme_client  # noqa: PLC0415 - as above

        client = await self._connect()
        key = await asyncio.to_thread(acme_client.new_key)
        order = await asyncio.to_thread(client.order, self._key.names.split(","), key, kind=self._settings.challenge)
        async with self._shown(order.challenges):
            await asyncio.to_thread(client.answer, order)
            chain = None
            while chain is None:
                await asyncio.sleep(POLL_SECONDS)
                chain = await asyncio.to_thread(client.poll, order)
        return chain, key

    async def _connect(self) -> "acme_client.AcmeClient":
        """A client with the account of this installation, which is created with the first order."""
        from postroad.network import acme_client  # noqa: PLC0415 - as above

        directory = self._settings.directory
        owner = sealed_values.acme_account_owner(directory)
        async with self._ctx.store.reading() as tx:
            account = await acme.account(tx, directory)
        if account is not None:
            key = encryption.decrypt(self._ctx.keys.encryption, account.private_key, owner=owner)
            client = acme_client.AcmeClient(directory, key, ca_file=self._settings.ca_file)
            await asyncio.to_thread(client.use_account, account.uri)
            return client
        key = await asyncio.to_thread(acme_client.new_key)
        client = acme_client.AcmeClient(directory, key, ca_file=self._settings.ca_file)
        uri = await asyncio.to_thread(client.register, self._settings.email)
        async with self._ctx.store.transaction() as tx:
            await key_check.require_current(self._ctx, tx)
            await acme.put_account(tx, acme.Account(directory, self._seal(key, owner), uri))
        return client

    @contextlib.asynccontextmanager
    async def _shown(self, challenges: "Sequence[acme_client.Challenge]") -> AsyncIterator[None]:
        """Let every host answer these challenges during the block."""
        kind, expires_at = self._settings.challenge, self._ctx.clock() + CLAIM_DURATION
        async with self._ctx.store.transaction() as tx:
            await acme.put_challenges(
                tx,
                [
                    acme.StoredChallenge(one.token, one.name.lower(), kind, one.key_authorization, expires_at)
                    for one in challenges
                ],
            )
        try:
            if challenges and kind == acme_certificate.TLS_ALPN:
                await asyncio.sleep(SPREAD_SECONDS)
            yield
        finally:
            async with self._ctx.store.transaction() as tx:
                await acme.remove_challenges(tx, [one.token for one in challenges], now=self._ctx.clock())

    async def _store(self, chain: str, key: bytes) -> Result:
        server_tls.context_of(chain.encode(), key)  # one that cannot be used must not replace one that can
        now, expires_at = self._ctx.clock(), server_tls.describe(chain.encode()).expires_at * times.SECOND
        due_at = certificate_schedule.renew_at(issued_at=now, expires_at=expires_at)
        async with self._ctx.store.transaction() as tx:
            await key_check.require_current(self._ctx, tx)
            await certificates.put(
                tx,
                self._key,
                chain=chain,
                private_key=self._seal(key, sealed_values.certificate_owner(*self._key)),
                issued_at=now,
                expires_at=expires_at,
                due_at=due_at,
            )
        self._log.info("certificate_issued", names=self._key.names, expires_at=times.to_wire(expires_at))
        return Result(expires_at=expires_at, due_at=due_at)

    async def _postpone(self, claimed: certificates.StoredCertificate, error: str) -> Result:
        due_at = certificate_schedule.retry_at(claimed.attempt_count, now=self._ctx.clock())
        async with self._ctx.store.transaction() as tx:
            await certificates.postpone(tx, self._key, due_at=due_at, error=error)
        self._log.warning(
            "certificate_not_issued",
            names=self._key.names,
            error=error,
            attempt=claimed.attempt_count,
            next_attempt_at=times.to_wire(due_at),
            expires_at=times.to_wire(claimed.expires_at) if claimed.expires_at else None,
        )
        return Result(error=error, due_at=due_at)

    def _seal(self, secret: bytes, owner: str) -> bytes:
        nonce = self._ctx.entropy(encryption.NONCE_BYTES)
        return encryption.encrypt(self._ctx.keys.encryption, secret, owner=owner, nonce=nonce)
