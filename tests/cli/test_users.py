"""`postroad user`, `token`, `operator` and `sso`."""

import re

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services.accounts import account_registry as accounts_registry
from postroad.services.domains import domain_registry
from postroad.services.people import api_keys, authentication, credentials, logins, password_links, sso_connections
from postroad.services.people import users as account_users
from postroad.storage.people import users
from tests import contexts
from tests.cli.cli_runner import Installation
from tests.services import audit_entries
from tests.services.people import authenticator

PASSWORD = "correct horse battery"


def log_in(installation: Installation, email: str, password: str) -> logins.LoggedIn:
    async def ask(ctx: context.Context) -> logins.LoggedIn:
        return await logins.log_in(ctx, email, password, client_address="127.0.0.1")

    return installation.ask(ask)


def authenticated(installation: Installation, token: str) -> callers.Caller:
    async def ask(ctx: context.Context) -> callers.Caller:
        return await authentication.authenticate(ctx, f"Bearer {token}", client_address="127.0.0.1")

    return installation.ask(ask)


def test_a_user_logs_in_with_the_password_that_is_shown_once(installation: Installation) -> None:
    owner = installation.json("user", "create", "jo@example.com")["user"]
    assert owner["role"] == "owner"
    assert log_in(installation, "jo@example.com", owner["password"]).user.id == owner["id"]
    lines = installation.text("user", "create", "al@example.com", "--role", "developer").splitlines()
    assert lines[0] == "al@example.com can log in to 'Shop' as developer."
    assert log_in(installation, "al@example.com", lines[1].split()[-1]).user.role == "developer"
    assert lines[2] == "Shown only once; store it safely."
    changed = installation.json("user", "password", "Jo@Example.com")["user"]["password"]
    assert log_in(installation, "jo@example.com", changed).user.id == owner["id"]
    listed = installation.text("user", "list", "--json")
    assert not any(secret in listed for secret in (owner["password"], changed, "argon2"))


def test_a_password_that_is_given_is_taken_and_not_repeated(installation: Installation) -> None:
    for words, given in (("create", PASSWORD), ("password", f"{PASSWORD} 2")):
        arguments = ("user", words, "jo@example.com", "--password-stdin", "--json")
        assert "password" not in installation.text(*arguments, given=f"{given}\r\n")
        assert log_in(installation, "jo@example.com", given).user.email == "jo@example.com"


def test_a_token_is_printed_alone_and_is_for_the_first_owner_by_default(installation: Installation) -> None:
    installation.text("user", "invite", "soon@example.com", "--role", "owner")
    assert "no active owner" in installation.refusal("token")
    member = installation.json("user", "create", "member@example.com", "--role", "developer")["user"]
    owner = installation.json("user", "create", "owner@example.com")["user"]
    assert authenticated(installation, installation.text("token", "member@example.com").strip()).user_id == member["id"]
    issued = installation.json("token")
    assert (issued["user"]["id"], issued["expires_at"][-1]) == (owner["id"], "Z")
    assert authenticated(installation, issued["token"]).user_id == owner["id"]


def test_links_of_invitations_and_for_new_passwords_work(installation: Installation) -> None:
    invited = installation.json("user", "invite", "jo@example.com", "--role", "read_only")
    assert (invited["user"]["role"], invited["user"]["joined_at"]) == ("read_only", None)
    assert invited["link"].startswith("http://127.0.0.1:")
    assert "has not accepted the invitation yet" in installation.refusal("token", "jo@example.com")
    assert use_link(installation, invited["link"], PASSWORD).id == invited["user"]["id"]
    assert log_in(installation, "jo@example.com", PASSWORD).user.role == "read_only"
    (listed,) = installation.json("user", "list")["users"]
    assert listed["joined_at"]
    assert listed["last_login_at"]
    lines = installation.text("user", "invite", "al@example.com").splitlines()
    assert lines[0] == "al@example.com can join 'Shop' as developer with this link:"
    assert use_link(installation, lines[1], PASSWORD).email == "al@example.com"
    until = r"It works once, until \d{4}-\d\d-\d\d \d\d:\d\d UTC\. Shown only once; store it safely\."
    assert re.fullmatch(until, lines[2])
    use_link(installation, installation.json("user", "link", "JO@example.com")["link"], f"{PASSWORD} 2")
    assert log_in(installation, "jo@example.com", f"{PASSWORD} 2").user.email == "jo@example.com"


def test_what_a_disabled_or_removed_user_created_is_listed(installation: Installation) -> None:
    user = installation.json("user", "create", "jo@example.com")["user"]

    async def make(ctx: context.Context) -> None:
        person = await account_users.find(ctx, user["account_id"], user["id"])
        acting = audit_entries.as_user(ctx, person)
        credential, _ = await credentials.create(acting, person.account_id, "Web shop")
        scopes = frozenset({callers.Scope.SEND})
        await api_keys.create(acting, person.account_id, credential_id=credential.id, name="Shop", scopes=scopes)

    def disable(*words: str) -> list[str]:
        return installation.text("user", "disable", "jo@example.com", *words).splitlines()

    installation.ask(make)
    stopped = "These stop working until the user is enabled: API key 'Shop', SMTP credential 'Web shop'."
    assert disable() == ["jo@example.com is disabled.", stopped]
    assert installation.text("user", "list").splitlines()[1].split()[3] == "yes"
    (listed,) = installation.json("credential", "list")["credentials"]
    assert (listed["created_by"], listed["created_by_email"]) == (user["id"], "jo@example.com")
    assert "jo@example.com" in installation.text("credential", "list")
    with pytest.raises(errors.Unauthorized):
        log_in(installation, "jo@example.com", user["password"])
    assert "is disabled" in installation.refusal("token", "jo@example.com")
    installation.text("user", "enable", "jo@example.com")
    assert log_in(installation, "jo@example.com", user["password"]).user.email == "jo@example.com"
    assert disable("--keep-secrets") == ["jo@example.com is disabled."]
    (listed,) = installation.json("credential", "list")["credentials"]
    assert (listed["created_by"], listed["disabled_at"]) == (None, None)
    installation.text("user", "enable", "jo@example.com")
    installation.ask(make)
    disable()
    installation.text("user", "create", "al@example.com")
    assert installation.text("user", "remove", "jo@example.com").splitlines() == [
        "jo@example.com is removed.",
        "These are revoked: API key 'Shop', SMTP credential 'Web shop'.",
    ]
    for listed in (installation.text("apikey", "list"), installation.text("credential", "list")):
        assert "removed user" in listed
        assert "usr_" not in listed
    assert [one["email"] for one in installation.json("user", "list")["users"]] == ["al@example.com"]


def test_somebody_unknown_is_refused_with_a_sentence(installation: Installation) -> None:
    commands = ("password", "disable", "enable", "link", "remove")
    for words in (*(("user", command) for command in commands), ("token",)):
        for email in ("nobody@example.com", "no address"):
            assert installation.refusal(*words, email) == f"user {email!r} does not exist"


def use_link(installation: Installation, link: str, password: str) -> users.User:
    async def ask(ctx: context.Context) -> users.User:
        return await password_links.redeem(ctx, link.rpartition("/")[2], password=password)

    return installation.ask(ask)


def test_a_recovery_link_also_removes_second_factors(installation: Installation) -> None:
    installation.text("user", "create", "jo@example.com")
    installation.ask(_set_up_app)
    use_link(installation, installation.json("user", "link", "jo@example.com")["link"], PASSWORD)
    with pytest.raises(errors.SecondFactorRequired):
        log_in(installation, "jo@example.com", PASSWORD)
    shown = installation.text("user", "link", "--recovery", "jo@example.com").splitlines()
    assert shown[0] == "jo@example.com can set a new password with this link, which also removes the second factors:"
    use_link(installation, shown[1], PASSWORD)
    assert log_in(installation, "jo@example.com", PASSWORD).user.email == "jo@example.com"


async def _set_up_app(ctx: context.Context) -> None:
    user = await account_users.by_email(ctx, "jo@example.com")
    assert user is not None
    clock = contexts.Clock()
    clock.now = ctx.clock()
    await authenticator.set_up(ctx, user, clock)


def test_a_role_is_changed_and_the_last_owner_keeps_theirs(installation: Installation) -> None:
    installation.text("user", "create", "jo@example.com")
    assert "last active owner" in installation.refusal("user", "role", "jo@example.com", "developer")
    assert "last active owner" in installation.refusal("user", "remove", "jo@example.com")
    installation.text("user", "create", "al@example.com")
    assert installation.json("user", "role", "jo@example.com", "developer")["user"]["role"] == "developer"
    assert (
        installation.text("user", "role", "jo@example.com", "read_only")
        == "jo@example.com now has the role read_only.\n"
    )
    assert "nobody" in installation.refusal("user", "role", "nobody@example.com", "developer")


def test_a_user_becomes_an_operator_and_is_one_no_longer(installation: Installation) -> None:
    installation.text("user", "create", "jo@example.com")
    assert installation.text("operator", "list") == "There are no operators.\n"
    added = installation.text("operator", "add", "Jo@Example.com")
    assert re.fullmatch(r"jo@example\.com of account acc_\w+ is an operator\.\n", added)
    (listed,) = installation.json("operator", "list")["operators"]
    assert (listed["email"], listed["enabled"]) == ("jo@example.com", True)
    assert "jo@example.com" in installation.text("operator", "list")
    assert installation.text("operator", "remove", "jo@example.com") == "jo@example.com is no longer an operator.\n"
    assert installation.json("operator", "list") == {"operators": []}


def test_who_is_no_operator_is_refused_with_a_sentence(installation: Installation) -> None:
    expected = "user 'jo@example.com' does not exist; create or invite the user first"
    assert installation.refusal("operator", "add", "jo@example.com") == expected
    assert installation.refusal("operator", "remove", "jo@example.com") == "'jo@example.com' is not an operator"


async def connect(ctx: context.Context) -> str:
    """An account that nobody can log in to without its provider."""
    account = await accounts_registry.create(ctx, "Corner")
    await domain_registry.add(ctx, account.id, "corp.example", verified=True)
    draft = sso_connections.Draft(
        issuer="https://login.corp.example",
        client_id="postroad",
        client_secret="hush",
        domains=["corp.example"],
        groups={},
    )
    await sso_connections.save(ctx, account.id, draft)
    return account.id


def test_the_single_sign_on_of_an_account_is_shown_without_its_secret_and_removed(installation: Installation) -> None:
    account_id = installation.ask(connect)
    named = ("--account", account_id)
    expected = "https://login.corp.example for corp.example; passwords are on.\n"
    assert installation.text("sso", "show", *named) == expected
    shown = installation.json("sso", "show", *named)["sso"]
    assert (shown["issuer"], shown["domains"]) == ("https://login.corp.example", ["corp.example"])
    assert shown["redirect_uri"].endswith(f"/sso/{account_id}/callback")
    assert "hush" not in str(shown)
    assert installation.text("sso", "remove", *named) == "Single sign-on of Corner is removed.\n"
    for verb in ("show", "remove"):
        assert installation.refusal("sso", verb, *named) == "this account has no single sign-on"
