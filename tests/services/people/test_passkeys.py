"""Passkeys of a login, against an authenticator in software: what they prove, and every answer that proves nothing."""

import dataclasses
import json
from typing import Any

import msgspec
import pytest

from postroad import config, context, errors
from postroad.services.people import passkeys, second_factors
from postroad.services.people.passkeys import Ceremony
from postroad.storage.people import second_factors as stored_passkeys
from postroad.storage.people import users
from tests.contexts import Clock
from tests.services.audit_entries import summaries
from tests.software_authenticator import SoftwareAuthenticator, decode

ORIGIN = "http://localhost:8025"
SESSION = "tok_" + "1" * 28
EXPIRED = "this request for a passkey has expired or was used; try again"
REFUSED = "this passkey was not accepted; try again, or use another sign-in method"


@pytest.fixture
def authenticator() -> SoftwareAuthenticator:
    return SoftwareAuthenticator(ORIGIN)


def at(ctx: context.Context, base_url: str) -> context.Context:
    """The same service with another public URL."""
    http = msgspec.structs.replace(ctx.settings.http, base_url=base_url)
    return dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, http=http))


async def login_of(ctx: context.Context, owner: users.User) -> users.Login:
    return await second_factors.login_of(ctx, owner.login_id or "")


async def register(
    ctx: context.Context, owner: users.User, authenticator: SoftwareAuthenticator, *, name: str = "Laptop"
) -> stored_passkeys.Passkey:
    made, _ = await register_answer(ctx, owner, await created(ctx, owner, authenticator), name=name)
    return made


async def created(
    ctx: context.Context, owner: users.User, authenticator: SoftwareAuthenticator, **wrong: Any
) -> passkeys.Answer:
    """What the browser of the login answers."""
    asked = await passkeys.ask_to_register(ctx, await login_of(ctx, owner), session_id=SESSION)
    return passkeys.Answer(asked.cookie, authenticator.create(asked.options, **wrong))


async def register_answer(
    ctx: context.Context, owner: users.User, answer: passkeys.Answer, *, name: str = "Laptop", session_id: str = SESSION
) -> tuple[stored_passkeys.Passkey, list[str]]:
    return await passkeys.register(ctx, await login_of(ctx, owner), answer, session_id=session_id, name=name)


@pytest.fixture
async def passkey(
    ctx: context.Context, owner: users.User, authenticator: SoftwareAuthenticator
) -> stored_passkeys.Passkey:
    return await register(ctx, owner, authenticator)


async def prove(
    ctx: context.Context, authenticator: SoftwareAuthenticator, ceremony: Ceremony = Ceremony.LOG_IN, **wrong: Any
) -> stored_passkeys.Passkey:
    asked = await passkeys.ask(ctx, ceremony)
    answer = passkeys.Answer(asked.cookie, authenticator.get(asked.options, **wrong))
    return await passkeys.check(ctx, answer, ceremony)


async def refused(
    ctx: context.Context,
    answer: passkeys.Answer,
    *,
    message: str = REFUSED,
    ceremony: Ceremony = Ceremony.LOG_IN,
    **whose: Any,
) -> None:
    with pytest.raises(errors.InvalidRequest) as refusal:
        await passkeys.check(ctx, answer, ceremony, **whose)
    assert refusal.value.message == message


async def test_options_name_the_relying_party_and_tell_nothing_about_the_login(
    ctx: context.Context, owner: users.User
) -> None:
    login = await login_of(ctx, owner)
    asked = await passkeys.ask_to_register(ctx, login, session_id=SESSION)
    options = dict(asked.options)
    handle, challenge = decode(options["user"]["id"]), decode(options.pop("challenge"))
    assert (len(handle), len(challenge)) == (32, 32)
    assert options == {
        "rp": {"id": "localhost", "name": "Postroad"},
        "user": {"id": options["user"]["id"], "name": "owner@example.com", "displayName": "owner@example.com"},
        "pubKeyCredParams": [{"type": "public-key", "alg": number} for number in (-7, -8, -257)],
        "timeout": 300_000,
        "excludeCredentials": [],
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "preferred",
        },
        "attestation": "none",
    }
    shown = json.loads(decode(asked.cookie.partition(".")[0]))
    assert sorted(shown) == ["ceremony", "subject", "until", "user_handle", "value"]
    assert shown["ceremony"] == passkeys.Ceremony.REGISTER
    other = await passkeys.ask_to_register(ctx, login, session_id=SESSION)
    assert other.options["user"]["id"] != options["user"]["id"]
    # Who is not known yet may use any passkey, and must be verified.
    asked = await passkeys.ask(ctx, Ceremony.LOG_IN)
    assert (asked.options["allowCredentials"], asked.options["userVerification"]) == ([], "required")


async def test_a_passkey_proves_its_login_and_remembers_its_use(
    ctx: context.Context,
    owner: users.User,
    authenticator: SoftwareAuthenticator,
    passkey: stored_passkeys.Passkey,
    clock: Clock,
) -> None:
    assert (passkey.name, passkey.rp_id, passkey.transports) == ("Laptop", "localhost", "hybrid internal")
    clock.pass_seconds(60)
    assert (await prove(ctx, authenticator)).login_id == owner.login_id
    (used,) = await passkeys.of_login(ctx, passkey.login_id)
    assert (used.sign_count, used.last_used_at) == (1, clock.now)


async def test_a_second_passkey_has_the_same_handle_and_excludes_the_first(
    ctx: context.Context, owner: users.User, passkey: stored_passkeys.Passkey, authenticator: SoftwareAuthenticator
) -> None:
    spare = SoftwareAuthenticator(ORIGIN)
    second = await register(ctx, owner, spare, name="Key")
    assert second.user_handle == passkey.user_handle
    asked = await passkeys.ask_to_register(ctx, await login_of(ctx, owner), session_id=SESSION)
    excluded = {decode(one["id"]) for one in asked.options["excludeCredentials"]}
    assert excluded == {authenticator.id, spare.id}
    with pytest.raises(errors.Conflict):
        await register(ctx, owner, spare)
    asked = await passkeys.ask(ctx, Ceremony.SECOND_FACTOR, login_id=passkey.login_id, subject="pending")
    assert asked.options["userVerification"] == "preferred"
    assert [one["transports"] for one in asked.options["allowCredentials"]] == [["hybrid", "internal"]] * 2


async def test_a_passkey_needs_a_short_name_and_a_login_has_twenty_at_most(
    ctx: context.Context, owner: users.User, passkey: stored_passkeys.Passkey
) -> None:
    for name in ("", "  ", "x" * 65, "two\nlines"):
        with pytest.raises(errors.InvalidRequest):
            await register(ctx, owner, SoftwareAuthenticator(ORIGIN), name=name)
    async with ctx.store.transaction() as tx:
        for number in range(19):
            more = dataclasses.replace(passkey, id=f"psk_{number}", credential_id=bytes([number]))
            await stored_passkeys.insert_passkey(tx, more)
    with pytest.raises(errors.Conflict):
        await register(ctx, owner, SoftwareAuthenticator(ORIGIN))


async def test_a_removed_passkey_proves_nothing(
    ctx: context.Context, owner: users.User, passkey: stored_passkeys.Passkey, authenticator: SoftwareAuthenticator
) -> None:
    login = await login_of(ctx, owner)
    with pytest.raises(errors.NotFound):
        await passkeys.remove(ctx, dataclasses.replace(login, id="lgn_other"), passkey.id)
    assert await passkeys.remove(ctx, login, passkey.id) == passkey
    with pytest.raises(errors.InvalidRequest):
        await prove(ctx, authenticator)
    with pytest.raises(errors.NotFound):
        await passkeys.remove(ctx, login, passkey.id)


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://localhost:9999"},
        {"rp_id": "evil.example"},
        {"is_framed": True},
        {"kind": "webauthn.create"},
        {"credential_id": b"of somebody else"},
        {"user_handle": b"somebody else"},
        {"user_handle": b""},
    ],
    ids=str,
)
async def test_an_answer_with_one_thing_wrong_proves_nothing(
    ctx: context.Context, passkey: stored_passkeys.Passkey, authenticator: SoftwareAuthenticator, wrong: dict[str, Any]
) -> None:
    with pytest.raises(errors.InvalidRequest) as refusal:
        await prove(ctx, authenticator, **wrong)
    assert refusal.value.message == REFUSED
    assert (await prove(ctx, authenticator)).id == passkey.id


async def test_an_answer_is_accepted_once_in_all_processes(
    ctx: context.Context, other_process: context.Context, owner: users.User, passkey: stored_passkeys.Passkey
) -> None:
    """Also of an authenticator that counts nothing."""
    silent = SoftwareAuthenticator(ORIGIN, counts=False)
    await register(ctx, owner, silent, name="Silent")
    asked = await passkeys.ask(ctx, Ceremony.LOG_IN)
    answer = passkeys.Answer(asked.cookie, silent.get(asked.options))
    await passkeys.check(ctx, answer, Ceremony.LOG_IN)
    await refused(ctx, answer, message=EXPIRED)
    await refused(other_process, answer, message=EXPIRED)


async def test_a_challenge_expires_after_five_minutes(
    ctx: context.Context, passkey: stored_passkeys.Passkey, authenticator: SoftwareAuthenticator, clock: Clock
) -> None:
    asked = await passkeys.ask(ctx, Ceremony.LOG_IN)
    answer = passkeys.Answer(asked.cookie, authenticator.get(asked.options))
    clock.pass_seconds(300)
    await refused(ctx, answer, message=EXPIRED)
    clock.pass_seconds(-1)
    assert (await passkeys.check(ctx, answer, Ceremony.LOG_IN)).id == passkey.id


async def test_an_answer_is_worth_nothing_without_the_cookie_of_its_browser(
    ctx: context.Context, passkey: stored_passkeys.Passkey, authenticator: SoftwareAuthenticator
) -> None:
    asked = await passkeys.ask(ctx, Ceremony.LOG_IN)
    theirs = await passkeys.ask(ctx, Ceremony.LOG_IN)
    text = authenticator.get(asked.options)
    await refused(ctx, passkeys.Answer(None, text), message=EXPIRED)
    await refused(ctx, passkeys.Answer("forged.forged", text), message=EXPIRED)
    await refused(ctx, passkeys.Answer(theirs.cookie, text))


async def test_a_challenge_is_for_one_ceremony_of_one_session_of_one_login(
    ctx: context.Context, passkey: stored_passkeys.Passkey, authenticator: SoftwareAuthenticator
) -> None:
    login_id = passkey.login_id
    asked = await passkeys.ask(ctx, Ceremony.CONFIRM, login_id=login_id, subject=SESSION)
    answer = passkeys.Answer(asked.cookie, authenticator.get(asked.options))
    await refused(ctx, answer, message=EXPIRED)
    await refused(ctx, answer, message=EXPIRED, ceremony=Ceremony.CONFIRM, login_id=login_id, subject="tok_other")
    await refused(ctx, answer, message=EXPIRED, ceremony=Ceremony.SECOND_FACTOR, login_id=login_id, subject=SESSION)
    proved = await passkeys.check(ctx, answer, Ceremony.CONFIRM, login_id=login_id, subject=SESSION)
    assert proved.id == passkey.id
    asked = await passkeys.ask(ctx, Ceremony.SECOND_FACTOR, login_id="lgn_theirs", subject="pending")
    assert asked.options["allowCredentials"] == []
    answer = passkeys.Answer(asked.cookie, authenticator.get(asked.options))
    await refused(ctx, answer, ceremony=Ceremony.SECOND_FACTOR, login_id="lgn_theirs", subject="pending")


async def test_without_verification_of_the_person_it_is_a_second_factor_and_no_login(
    ctx: context.Context, owner: users.User
) -> None:
    bare = SoftwareAuthenticator(ORIGIN, verifies=False)
    made = await register(ctx, owner, bare)
    with pytest.raises(errors.InvalidRequest):
        await prove(ctx, bare)
    for ceremony, does in ((Ceremony.CONFIRM, False), (Ceremony.SECOND_FACTOR, True)):
        asked = await passkeys.ask(ctx, ceremony, login_id=made.login_id, subject="s")
        answer = passkeys.Answer(asked.cookie, bare.get(asked.options))
        if does:
            assert (await passkeys.check(ctx, answer, ceremony, login_id=made.login_id, subject="s")).id == made.id
        else:
            await refused(ctx, answer, ceremony=ceremony, login_id=made.login_id, subject="s")


async def test_a_copied_authenticator_is_noticed_by_its_count_and_told_by_the_audit_log(
    ctx: context.Context, owner: users.User, passkey: stored_passkeys.Passkey, authenticator: SoftwareAuthenticator
) -> None:
    copy = authenticator.copied()
    await prove(ctx, authenticator)
    await prove(ctx, authenticator)
    with pytest.raises(errors.InvalidRequest):
        await prove(ctx, copy)
    copy.count = 0
    with pytest.raises(errors.InvalidRequest):
        await prove(ctx, copy)
    await ctx.access_cache.password_checks.close()  # it is written after the response
    assert "user.login_failed" in [action for action, _, _ in await summaries(ctx, owner.account_id)]


async def test_a_registration_is_bound_to_its_session_and_made_once_with_a_known_algorithm(
    ctx: context.Context, owner: users.User, authenticator: SoftwareAuthenticator
) -> None:
    login = await login_of(ctx, owner)
    with pytest.raises(errors.InvalidRequest):
        await register_answer(ctx, owner, await created(ctx, owner, authenticator, algorithm=-47))
    answer = await created(ctx, owner, authenticator)
    with pytest.raises(errors.InvalidRequest):
        await register_answer(ctx, owner, answer, session_id="tok_other")
    assert await passkeys.of_login(ctx, login.id) == []
    made, _ = await register_answer(ctx, owner, answer)
    await passkeys.remove(ctx, login, made.id)
    with pytest.raises(errors.InvalidRequest) as refusal:
        await register_answer(ctx, owner, answer)
    assert refusal.value.message == EXPIRED


async def test_after_another_address_of_the_service_old_passkeys_prove_nothing(
    ctx: context.Context, passkey: stored_passkeys.Passkey, authenticator: SoftwareAuthenticator
) -> None:
    moved = at(ctx, "https://mail.example.net")
    asked = await passkeys.ask(moved, Ceremony.LOG_IN)
    answer = passkeys.Answer(
        asked.cookie, authenticator.get(asked.options, origin="https://mail.example.net", rp_id="mail.example.net")
    )
    await refused(moved, answer)
    with pytest.raises(errors.Conflict):
        await passkeys.ask(at(ctx, "https://192.0.2.7"), Ceremony.LOG_IN)


async def test_the_first_passkey_is_a_factor_with_recovery_codes_and_everybody_is_told(
    ctx: context.Context, owner: users.User, authenticator: SoftwareAuthenticator
) -> None:
    made, codes = await register_answer(ctx, owner, await created(ctx, owner, authenticator))
    assert len(codes) == 10
    factors = await second_factors.of_login(ctx, made.login_id)
    assert (factors.exist, factors.passkeys, factors.recovery_codes) == (True, 1, 10)
    assert await second_factors.users_with(ctx, owner.account_id) == {owner.id}
    spare = await created(ctx, owner, SoftwareAuthenticator(ORIGIN))
    assert (await register_answer(ctx, owner, spare, name="Key"))[1] == []
    await passkeys.remove(ctx, await login_of(ctx, owner), made.id)
    assert (await second_factors.of_login(ctx, made.login_id)).recovery_codes == 10
    async with ctx.store.transaction() as tx:
        await second_factors.remove_all(ctx, tx, made.login_id)
    factors = await second_factors.of_login(ctx, made.login_id)
    assert (factors.exist, factors.passkeys, factors.recovery_codes) == (False, 0, 0)
    told = await summaries(ctx, owner.account_id)
    assert [(action, detail) for action, _, detail in told if "second_factor" in action] == [
        ("user.second_factor_added", "the passkey Key"),
        ("user.second_factor_added", "the passkey Laptop"),
        ("user.second_factor_removed", "all passkeys"),
        ("user.second_factor_removed", "the passkey Laptop"),
    ]


# The relying party follows the settings, and nothing that a request says.


@pytest.mark.parametrize(
    "http, party",
    [
        ({"base_url": "https://mail.example.net"}, ("mail.example.net", "https://mail.example.net")),
        ({"base_url": "https://mail.example.net:443"}, ("mail.example.net", "https://mail.example.net")),
        ({"base_url": "https://mail.example.net:8443"}, ("mail.example.net", "https://mail.example.net:8443")),
        ({"base_url": "https://Mail.Example.NET"}, ("mail.example.net", "https://mail.example.net")),
        ({"base_url": "http://localhost:9025"}, ("localhost", "http://localhost:9025")),
        ({"listen": "127.0.0.1:8025"}, ("localhost", "http://localhost:8025")),
        ({"listen": "[::1]:80"}, ("localhost", "http://localhost")),
        # Browsers have no passkeys for addresses, nor without TLS.
        ({"base_url": "https://192.0.2.7"}, None),
        ({"base_url": "https://[2001:db8::7]"}, None),
        ({"base_url": "http://mail.example.net"}, None),
    ],
    ids=str,
)
def test_it_is_the_host_of_the_configured_url(http: dict[str, Any], party: tuple[str, str] | None) -> None:
    settings = config.load(environment={}, overrides={"http": http})
    found = passkeys.relying_party(settings)
    assert (None if found is None else (found.id, found.origin)) == party
