"""Reports about mail for tests: how they are written, and recipients that are final before one comes."""

from postroad import context
from postroad.mail import return_path
from postroad.model.mail import statuses
from postroad.model.units import identifiers
from postroad.storage.mail import attempts, messages
from tests.storage import samples

ADA = "ada@example.net"


def report(*groups: str) -> bytes:
    """A report with these groups of fields."""
    status = "\n\n".join(["Reporting-MTA: dns; mx.example.net", *groups])
    head = "Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\n"
    return f"{head}{status}\n--b--\n".encode()


def group(
    who: str, *, action: str = "failed", code: int = 550, status: str = "5.1.1", words: str = "no such user"
) -> str:
    return (
        f"Final-Recipient: rfc822; {who}\nAction: {action}\nStatus: {status}\n"
        f"Diagnostic-Code: smtp; {code} {status} {words}"
    )


async def path(ctx: context.Context, message_id: str, who: str = ADA) -> str:
    """The return path of a recipient of a message."""
    async with ctx.store.transaction() as tx:
        account_id = await messages.account_of(tx, message_id)
        assert account_id is not None
        (recipient_id,) = [
            one.id for one in await attempts.addressees(tx, account_id, message_id) if one.email_key == who
        ]
    return return_path.address(
        ctx.keys.return_path, message_id=message_id, recipient_id=recipient_id, domain="return.example.com"
    )


def unknown_path(ctx: context.Context) -> str:
    """A return path that is signed, of a message that does not exist."""
    return return_path.address(
        ctx.keys.return_path,
        message_id="em_" + "0" * 28,
        recipient_id=ctx.new_id(identifiers.RECIPIENT, now=ctx.clock()),
        domain="return.example.com",
    )


async def named(ctx: context.Context, message_id: str, who: str = ADA) -> return_path.ReturnPath:
    """What the token of a recipient names."""
    found = return_path.read(ctx.keys.return_path, await path(ctx, message_id, who))
    assert found is not None
    return found


async def settle(ctx: context.Context, status: statuses.RecipientStatus = statuses.RecipientStatus.DELIVERED) -> None:
    """Give every recipient this status."""
    samples.teach(ctx.store, settle=f"UPDATE recipients SET status = '{status}'")  # noqa: S608 - a test's own word
    async with ctx.store.transaction() as tx:
        await tx.execute("test.settle")
