"""An authenticator app: the codes of a secret at the time of a clock, as another implementation computes them."""

import base64
import hashlib
import hmac
from collections.abc import Callable

from postroad import context
from postroad.services.people import second_factors
from postroad.storage.people import users
from tests.contexts import SECOND, Clock


def code(secret: str, clock: Callable[[], int], *, steps: int = 0) -> str:
    """The code that the app shows, or the one some steps later."""
    counter = clock() // SECOND // 30 + steps
    digest = hmac.new(base64.b32decode(secret), counter.to_bytes(8, "big"), hashlib.sha1).digest()
    offset = digest[-1] & 0xF
    return f"{(int.from_bytes(digest[offset : offset + 4], 'big') & 0x7FFFFFFF) % 1_000_000:06d}"


def wrong(secret: str, clock: Clock) -> str:
    """A code that is not right at this time."""
    right = {code(secret, clock, steps=steps) for steps in range(-2, 3)}
    return next(text for text in map("{:06d}".format, range(10)) if text not in right)


async def login_of(ctx: context.Context, user: users.User) -> users.Login:
    """What a user logs in with."""
    async with ctx.store.reading() as tx:
        found = await users.login_by_id(tx, user.login_id or "")
    assert found is not None
    return found


async def set_up(ctx: context.Context, user: users.User, clock: Clock) -> tuple[str, list[str]]:
    """Give a user an authenticator app: its secret, and the recovery codes. The code of this moment is used up."""
    login = await login_of(ctx, user)
    secret = await second_factors.begin_totp(ctx, login)
    return secret, await second_factors.confirm_totp(ctx, login, code(secret, clock))
