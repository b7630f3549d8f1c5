"""Nobody grants more than they have: keys that create keys, credentials and users, and members who create keys."""

import pytest

from postroad import errors
from postroad.model import actors, caller
from postroad.services.auth import grants

SEND, READ, TEAM = caller.Scope.SEND, caller.Scope.READ, caller.Scope.TEAM


def key(*scopes: caller.Scope) -> actors.Actor:
    """An actor that is an API key."""
    who = caller.Caller(
        account_id="acc_1",
        credential_id="cred_1",
        scheme=caller.Scheme.API_KEY,
        permissions=frozenset(),
        key=caller.ApiKey("key_1", "deploy", frozenset(scopes)),
    )
    return actors.Actor(actors.Kind.API_KEY, None, who=who)


def person(role: caller.Role) -> actors.Actor:
    who = caller.Caller("acc_1", "cred_1", caller.Scheme.TOKEN, caller.ROLE_PERMISSIONS[role], user_id="usr_1")
    return actors.Actor(actors.Kind.PERSON, "usr_1", who=who)


def test_a_key_gives_the_scopes_that_it_has() -> None:
    grants.check_key(key(SEND, TEAM), frozenset({SEND, TEAM}))
    grants.check_key(key(SEND, TEAM), frozenset({SEND}))
    grants.check_key(key(*caller.Scope), caller.SCOPES)


@pytest.mark.parametrize("scopes, missing", [({READ}, "read"), ({SEND, READ}, "read"), (set(caller.Scope), "read")])
def test_a_key_gives_no_scope_that_it_does_not_have(scopes: set[caller.Scope], missing: str) -> None:
    with pytest.raises(errors.Forbidden, match=f"^this API key does not have the scope '{missing}', so it cannot give"):
        grants.check_key(key(SEND, TEAM), frozenset(scopes))


def test_a_key_creates_only_keys_of_its_own_credential() -> None:
    assert grants.credential_of_key(key(TEAM), None) == "cred_1"
    assert grants.credential_of_key(key(TEAM), "cred_1") == "cred_1"
    with pytest.raises(errors.Forbidden, match=r"^credential_id: "):
        grants.credential_of_key(key(TEAM), "cred_2")
    assert grants.credential_of_key(person(caller.Role.DEVELOPER), "cred_2") == "cred_2"
    assert grants.credential_of_key(actors.OPERATOR, None) is None


def test_a_credential_sends_and_reads_so_only_a_key_with_both_creates_one() -> None:
    grants.check_credential(key(SEND, READ, TEAM))
    for scopes in ((TEAM,), (SEND, TEAM), (READ, TEAM)):
        with pytest.raises(errors.Forbidden, match="cannot give it to an SMTP credential"):
            grants.check_credential(key(*scopes))


def test_a_user_sees_everything_so_only_a_key_with_every_scope_gives_users_rights() -> None:
    grants.check_user(key(*caller.Scope))
    for missing in sorted(caller.SCOPES):
        with pytest.raises(errors.Forbidden, match=f"does not have the scope '{missing}'"):
            grants.check_user(key(*(scope for scope in caller.Scope if scope is not missing)))


def test_only_an_owner_creates_keys_that_manage_users() -> None:
    grants.check_key(person(caller.Role.OWNER), caller.SCOPES)
    grants.check_key(person(caller.Role.DEVELOPER), caller.SCOPES - {TEAM})
    for scopes in (caller.SCOPES, frozenset({TEAM})):
        with pytest.raises(errors.Forbidden, match=r"^scopes: only an owner"):
            grants.check_key(person(caller.Role.DEVELOPER), scopes)


def test_people_and_operators_grant_as_their_role_permits() -> None:
    for actor in (person(caller.Role.OWNER), actors.OPERATOR, actors.SERVICE):
        grants.check_key(actor, caller.SCOPES)
        grants.check_credential(actor)
        grants.check_user(actor)
