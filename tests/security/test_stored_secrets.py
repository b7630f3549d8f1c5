"""Security cases E16 and E17: what of a secret is kept after it was used, and how secrets are compared."""

import ast
import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import postroad
from postroad.dashboard.framework import cookies
from postroad.keys import installation_keys
from postroad.mail.signing import domain_keys
from tests import contexts
from tests.dashboard import sample_account
from tests.security import tenants, whole_service
from tests.security.tenants import Tenant
from tests.security.whole_service import WholeService
from tests.services.people import authenticator

NEW: Final = "another long sentence"
WRONG: Final = "a sentence that is wrong"
SQLITE: Final = "sqlite:///"
SOURCE: Final = Path(postroad.__file__).parent
SECRET: Final = re.compile("password|secret|token|signature|digest|checksum")
# Comparisons of what is no secret: how long one is, whether it was mistyped, the id of its session.
HARMLESS: Final = {
    "len(token) != tokens.SECRET_CHARACTERS",
    "session.id == request.caller.token_id",
    "found.epoch != login.tokens_valid_from",
    "checksum(text[:-CHECKSUM_CHARACTERS]) == text[-CHECKSUM_CHARACTERS:]",
}


async def secrets_of(service: WholeService, tenant: Tenant) -> list[str]:
    """Create, use, mistype, change and revoke every kind of secret; returns all of them."""
    async with tenants.client(service) as http:
        link = next(secret for secret in tenant.secrets if len(secret) == 43 and secret.isalnum())
        assert (await http.post(f"/password/{link}", data={"password": NEW})).status_code == 303
    assert (await tenants.log_in(service, tenant.email, WRONG)).status_code == 401
    async with service.connect(log_in=False) as session:
        await session.ask(whole_service.plain("", service.login[0], WRONG))
        (reply,) = await session.ask(whole_service.plain("", *service.login))
        assert reply.startswith(b"235 ")
    page = await tenant.browser.post("/profile/token", data={"csrf_token": tenant.csrf_token})
    handed_out = re.findall(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", page.text)
    assert handed_out
    factors = await factors_of(service, tenant)
    change = {"current_password": tenants.PASSWORD, "new_password": NEW}
    fresh = (await tenant.do("POST", "/v1/auth/password", json=change))["token"]
    async with tenants.client(service) as http:
        assert (await http.post("/v1/auth/logout", headers={"Authorization": f"Bearer {fresh}"})).status_code == 204
    return [*tenant.secrets, NEW, WRONG, fresh, *handed_out, *factors, service.password]


async def factors_of(service: WholeService, tenant: Tenant) -> list[str]:
    """Set up a second factor and log in as far as its code: the secret of the app, the codes, and the cookie."""
    proof = {"csrf_token": tenant.csrf_token, "proof": tenants.PASSWORD}
    page = await tenant.browser.post("/profile/security/totp", data=proof)
    (secret,) = re.findall(r"<code>((?:[A-Z2-7]{4} ?){8})</code>", page.text)
    plain = secret.replace(" ", "")
    first = {"csrf_token": tenant.csrf_token, "code": authenticator.code(plain, service.ctx.clock)}
    page = await tenant.browser.post("/profile/security/totp/confirm", data=first)
    codes = sorted(set(re.findall(r"\b(?:[2-9a-z]{4}-){3}[2-9a-z]{4}\b", page.text)))
    assert len(codes) == 10
    async with tenants.client(service) as http:
        answer = await http.post("/login", data={"email": tenant.email, "password": tenants.PASSWORD})
        pending = answer.cookies[cookies.PENDING]
    return [plain, *codes, *(code.replace("-", "") for code in codes), pending]


async def kept(service: WholeService) -> bytes:
    """Everything that the store keeps; of SQLite the octets of its files, with what was written over in the log."""
    url = service.ctx.settings.database.url
    if url.startswith(SQLITE):
        file = Path(url.removeprefix(SQLITE))
        found = sorted(file.parent.glob(f"{file.name}*"))
        assert any(each.name.endswith("-wal") for each in found)
        return b"".join(each.read_bytes() for each in found)
    rows = (row for rows in (await sample_account.dump(url)).values() for row in rows)
    return b"\n".join(value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row)


def written(secret: bytes) -> Iterator[bytes]:
    """A secret in every way in which somebody could have written it down."""
    yield secret
    yield secret.hex().encode()
    yield base64.b64encode(secret).rstrip(b"=")
    yield base64.urlsafe_b64encode(secret).rstrip(b"=")
    yield secret.decode("latin-1").encode("utf-16-le")


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
async def test_e16_a_dump_of_the_store_holds_no_secret(service: WholeService) -> None:
    """E16: no password, key, token, link, secret of a webhook or key of the installation; not even in deleted rows."""
    async with tenants.settled(service, "north") as north:
        key = await domain_keys.signing_key(service.ctx, north.account_id, north.domain)
        assert key is not None
        all_secrets = [each.encode() for each in await secrets_of(service, north)]
        keys = service.ctx.keys
        all_secrets += [contexts.SECRET_KEY.encode(), keys.token, keys.session, keys.encryption, keys.return_path]
        all_secrets += [key.private_key, key.private_key[-64:]]
        store = await kept(service)
    assert len(all_secrets) > 18
    for secret in all_secrets:
        assert [form for form in written(secret) if form in store] == []
    # What is there can be found: text that is no secret, the hashes of passwords, and that of the key.
    (api_key,) = [secret for secret in north.secrets if secret.startswith(installation_keys.API_KEY_PREFIX)]
    assert b"north order" in store
    assert b"$argon2id$v=19$" in store
    assert hashlib.sha256(api_key.encode()).digest() in store


def test_e17_no_secret_is_compared_character_by_character() -> None:
    """E17: nothing that is called like a secret stands beside `==`: hashes are looked up, the rest compared whole."""
    strange = [
        f"{file.relative_to(SOURCE)}: {ast.unparse(node)}"
        for room in ("api", "dashboard", "services", "submission", "web", "webhooks")
        for file in sorted((SOURCE / room).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Compare) and _compares_a_secret(node) and ast.unparse(node) not in HARMLESS
    ]
    assert strange == []
    guilty = ast.parse("form.csrf_token == expected", mode="eval").body
    assert isinstance(guilty, ast.Compare)
    assert _compares_a_secret(guilty)


def _compares_a_secret(node: ast.Compare) -> bool:
    if not any(isinstance(operator, ast.Eq | ast.NotEq) for operator in node.ops):
        return False
    sides = (node.left, *node.comparators)
    if any(isinstance(side, ast.Constant) for side in sides):
        return False
    names = [part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in ast.walk(node)]
    return any(SECRET.search(name) for name in names)
