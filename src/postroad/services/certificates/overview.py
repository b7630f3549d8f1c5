"""What certificate each listener has, and how long it is valid, for operators and metrics."""

from pathlib import Path

import msgspec

from postroad import config
from postroad.model import times
from postroad.network import server_tls
from postroad.services import context
from postroad.storage import certificates


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
    """The certificates of the listeners that use TLS."""
    found = []
    for listener in config.LISTENERS:
        if config.section_of(ctx.settings, listener).tls_certificate:
            found.append(_from_file(ctx.settings, listener))
        elif config.uses_acme(ctx.settings, listener):
            found.append(await _from_store(ctx, listener))
    return found


async def seconds_left(ctx: context.Context) -> dict[tuple[str, ...], float]:
    """How long the certificate of each listener is valid."""
    now = ctx.clock()
    return {
        (one.listener,): (one.expires_at - now) / times.SECOND
        for one in await of_listeners(ctx)
        if one.expires_at is not None
    }


def _from_file(settings: config.Settings, listener: str) -> ListenerCertificate:
    file = Path(config.section_of(settings, listener).tls_certificate)
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
