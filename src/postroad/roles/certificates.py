"""Follows the certificate of `acme.names` in every process with listeners. It is read before they start.

The maintenance role renews it.
"""

from collections.abc import Mapping

from postroad.roles import role, supervisor
from postroad.services import context
from postroad.services.certificates import acme_certificate
from postroad.telemetry import logs


def watched(ctx: context.Context, log: logs.Logger) -> acme_certificate.AcmeCertificate | None:
    """The certificate of this process, if the service obtains it by itself."""
    return acme_certificate.AcmeCertificate(ctx, log) if ctx.settings.acme.names else None


def first(role_context: role.RoleContext, starts: Mapping[str, supervisor.Start]) -> Mapping[str, supervisor.Start]:
    """These roles, and before them the one that follows the certificate."""
    return starts if role_context.acme is None else {"certificates": _start, **starts}


async def _start(role_context: role.RoleContext) -> role.Started:
    followed = role_context.acme
    assert followed is not None  # noqa: S101 - `first` adds this role only then
    await followed.load()
    if followed.context is None:
        role_context.log.warning(
            "certificate_missing",
            names=list(role_context.context.settings.acme.names),
            detail="TLS listeners close connections until the maintenance role has obtained a certificate",
        )

    async def work() -> None:
        await followed.watch(role_context.stopping)

    return role.Started(work)
