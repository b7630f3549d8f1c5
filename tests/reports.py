"""Reports about mail for tests: how they are written, and recipients that are final before one comes."""

from postroad.model import mail
from postroad.services import context
from tests.storage import samples


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


async def settle(ctx: context.Context, status: mail.RecipientStatus = mail.RecipientStatus.DELIVERED) -> None:
    """Give every recipient this status."""
    samples.teach(ctx.store, settle=f"UPDATE recipients SET status = '{status}'")  # noqa: S608 - a test's own word
    async with ctx.store.transaction() as tx:
        await tx.execute("test.settle")
