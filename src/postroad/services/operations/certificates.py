"""The certificates of listeners: read from files or ordered from an authority (ACME), renewed, shown to operators."""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from postroad import config, context, errors
from postroad.keys import encryption, key_check
from postroad.model.domains import host_records
from postroad.model.units import times
from postroad.network.tls import server_tls
from postroad.storage.operations import certificates
from postroad.telemetry import logs

# The certificate of `acme.names` as a process knows it: read from the store at intervals, used by all its listeners.
#
# Until the first one is there, listeners with implicit TLS close connections, and the others offer no STARTTLS.

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
        self.challenges = server_tls.AlpnChallenges()

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
                if config.acme_challenge(self._ctx.settings) == config.TLS_ALPN_01:
                    pending = await certificates.challenges(tx, config.TLS_ALPN_01, now=self._ctx.clock())
        except errors.PostroadError:
            return
        self.challenges.replace({challenge.name: challenge.key_authorization for challenge in pending})
        if found is not None and found.issued_at != self._issued_at:
            self._issued_at = found.issued_at
            self._use(found)

    def _use(self, found: certificates.StoredCertificate) -> None:
        try:
            key = encryption.decrypt(
                self._ctx.keys.encryption, found.private_key, owner=encryption.certificate_owner(*self._key)
            )
            self.replace(found.chain.encode(), key)
        except (encryption.DecryptionError, server_tls.CertificateError) as problem:
            self._log.error("certificate_unusable", names=self._key.names, detail=str(problem))
        else:
            self._log.info("certificate_loaded", names=self._key.names)


# The certificate of the listeners. Files are checked once a second, so a renewed one is used without a restart.
#
# Open connections keep the certificate that they started with.


def load(settings: config.Settings) -> server_tls.Certificate | None:
    """The certificate in files, if there is one. Raises ConfigError if they cannot be used."""
    if not settings.tls.certificate:
        return None
    try:
        return server_tls.Certificate.load(Path(settings.tls.certificate), Path(settings.tls.key))
    except server_tls.CertificateError as problem:
        raise config.ConfigError(f"tls.certificate: {problem}") from problem


def file_warnings(settings: config.Settings, *, now: int) -> list[str]:
    """Why clients refuse the certificate in files at this time."""
    file = settings.tls.certificate
    try:
        described = server_tls.describe(Path(file).read_bytes()) if file else None
    except (OSError, ValueError):
        return []  # `load` reports it
    about = f"tls.certificate: the certificate in {file}"
    if described is not None and described.expires_at * times.SECOND <= now:
        return [f"{about} expired on {_day(described.expires_at)}; renew it"]
    if described is not None and described.valid_from * times.SECOND > now:
        return [f"{about} is not valid before {_day(described.valid_from)}; check the clock of this host"]
    return []


def _day(seconds: int) -> str:
    return times.to_wire(seconds * times.SECOND)[:10]


def refresher(
    certificate: server_tls.ServerCertificate | None, *, listener: str, log: logs.Logger
) -> Callable[[], None] | None:
    """A function that takes over a renewed certificate, and logs it."""
    if certificate is None:
        return None
    event = f"{listener}_certificate"

    def refresh() -> None:
        try:
            detail = certificate.refresh()
        except server_tls.CertificateError as problem:
            log.warning(event, detail=f"the old certificate stays in use: {problem}")
        else:
            if detail is not None:
                log.info(event, detail=detail)

    return refresh


class ListenerCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """The certificate of a listener: from a `file` or by `acme`. `problem` says why there is none, or no newer one."""

    listener: str
    source: str
    names: tuple[str, ...] = ()
    expires_at: int | None = None
    # When it is ordered next, by ACME.
    due_at: int | None = None
    problem: str = ""


async def of_listeners(ctx: context.Context) -> list[ListenerCertificate]:
    used = config.tls_sections(ctx.settings)
    if ctx.settings.tls.certificate:
        return [_from_file(ctx.settings, listener) for listener in used]
    return [await _from_store(ctx, listener) for listener in used]


async def seconds_left(ctx: context.Context) -> dict[tuple[str, ...], float]:
    now = ctx.clock()
    return {
        (listener.listener,): (listener.expires_at - now) / times.SECOND
        for listener in await of_listeners(ctx)
        if listener.expires_at is not None
    }


def _from_file(settings: config.Settings, listener: str) -> ListenerCertificate:
    file = Path(settings.tls.certificate)
    try:
        described = server_tls.describe(file.read_bytes())
    except OSError as problem:
        return ListenerCertificate(
            listener=listener, source="file", problem=f"{file} cannot be read: {problem.strerror}"
        )
    except ValueError:
        return ListenerCertificate(
            listener=listener, source="file", problem=f"{file} contains no certificate in PEM format"
        )
    return ListenerCertificate(
        listener=listener, source="file", names=described.names, expires_at=described.expires_at * times.SECOND
    )


async def _from_store(ctx: context.Context, listener: str) -> ListenerCertificate:
    key = certificates.key_of(ctx.settings.acme.directory, ctx.settings.acme.names)
    async with ctx.store.reading() as tx:
        found = await certificates.find(tx, key)
    return ListenerCertificate(
        listener=listener,
        source="acme",
        names=tuple(key.names.split(",")),
        expires_at=found.expires_at if found is not None and found.chain else None,
        due_at=found.due_at if found is not None else None,
        problem=(found.error if found is not None else "") or ("" if found and found.chain else "not obtained yet"),
    )


if TYPE_CHECKING:
    from postroad.network.tls import acme_client

# Authorities check a name within seconds and issue within a minute.
ORDER_SECONDS: Final = 180
# Longer than an order. A process that dies meanwhile, again and again, does not order more often than this.
CLAIM_DURATION: Final = 15 * 60 * times.SECOND
POLL_SECONDS: Final = 0.5
# By then, all processes have read new TLS-ALPN-01 challenges.
SPREAD_SECONDS: Final = 2 * WATCH_SECONDS
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
        await asyncio.to_thread(importlib.import_module, "postroad.network.tls.acme_client")
        from postroad.network.tls import acme_client  # noqa: PLC0415

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
        from postroad.network.tls import acme_client  # noqa: PLC0415 - as above

        client = await self._connect()
        key = await asyncio.to_thread(acme_client.new_key)
        order = await asyncio.to_thread(
            client.order, self._key.names.split(","), key, kind=config.acme_challenge(self._ctx.settings)
        )
        async with self._shown(order.challenges):
            await asyncio.to_thread(client.answer, order)
            chain = None
            while chain is None:
                await asyncio.sleep(POLL_SECONDS)
                chain = await asyncio.to_thread(client.poll, order)
        return chain, key

    async def _connect(self) -> "acme_client.AcmeClient":
        """A client with the account of this installation, which is created with the first order."""
        from postroad.network.tls import acme_client  # noqa: PLC0415 - as above

        directory = self._settings.directory
        owner = encryption.acme_account_owner(directory)
        async with self._ctx.store.reading() as tx:
            account = await certificates.acme_account(tx, directory)
        if account is not None:
            key = encryption.decrypt(self._ctx.keys.encryption, account.private_key, owner=owner)
            client = acme_client.AcmeClient(directory, key, ca_file=self._settings.ca_file)
            await asyncio.to_thread(client.use_account, account.uri)
            return client
        key = await asyncio.to_thread(acme_client.new_key)
        client = acme_client.AcmeClient(directory, key, ca_file=self._settings.ca_file)
        uri = await asyncio.to_thread(client.register, self._settings.email)
        async with self._ctx.store.transaction() as tx:
            await key_check.require_current(self._ctx.keys, tx)
            await certificates.put_account(tx, certificates.AcmeAccount(directory, self._seal(key, owner), uri))
        return client

    @contextlib.asynccontextmanager
    async def _shown(self, challenges: "Sequence[acme_client.Challenge]") -> AsyncIterator[None]:
        """Let every host answer these challenges during the block."""
        kind, expires_at = config.acme_challenge(self._ctx.settings), self._ctx.clock() + CLAIM_DURATION
        async with self._ctx.store.transaction() as tx:
            await certificates.put_challenges(
                tx,
                [
                    certificates.StoredChallenge(
                        challenge.token, challenge.name.lower(), kind, challenge.key_authorization, expires_at
                    )
                    for challenge in challenges
                ],
            )
        try:
            if challenges and kind == config.TLS_ALPN_01:
                await asyncio.sleep(SPREAD_SECONDS)
            yield
        finally:
            async with self._ctx.store.transaction() as tx:
                await certificates.remove_challenges(
                    tx, [challenge.token for challenge in challenges], now=self._ctx.clock()
                )

    async def _store(self, chain: str, key: bytes) -> Result:
        server_tls.context_of(chain.encode(), key)  # one that cannot be used must not replace one that can
        now, expires_at = self._ctx.clock(), server_tls.describe(chain.encode()).expires_at * times.SECOND
        due_at = host_records.renew_at(issued_at=now, expires_at=expires_at)
        async with self._ctx.store.transaction() as tx:
            await key_check.require_current(self._ctx.keys, tx)
            await certificates.put(
                tx,
                self._key,
                chain=chain,
                private_key=self._seal(key, encryption.certificate_owner(*self._key)),
                issued_at=now,
                expires_at=expires_at,
                due_at=due_at,
            )
        self._log.info("certificate_issued", names=self._key.names, expires_at=times.to_wire(expires_at))
        return Result(expires_at=expires_at, due_at=due_at)

    async def _postpone(self, claimed: certificates.StoredCertificate, error: str) -> Result:
        due_at = host_records.retry_at(claimed.attempt_count, now=self._ctx.clock())
        async with self._ctx.store.transaction() as tx:
            await certificates.postpone(tx, self._key, due_at=due_at, error=error)
        self._log.warning(
            "certificate_order_failed",
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
