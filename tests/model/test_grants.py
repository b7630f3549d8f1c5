"""Nobody grants more than they have: keys that create keys, credentials and users, and members who create keys."""

import pytest

from postroad import errors
from postroad.model.people import callers, grants

SEND, READ, TEAM = callers.Scope.SEND, callers.Scope.READ, callers.Scope.TEAM


def key(*scopes: callers.Scope) -> callers.Actor:
    """An actor that is an API key."""
    who = callers.Caller(
        account_id="acc_1",
        credential_id="cred_1",
        scheme=callers.Scheme.API_KEY,
        permissions=frozenset(),
        key=callers.ApiKey("key_1", "deploy", frozenset(scopes)),
    )
    return callers.Actor(callers.ActorKind.API_KEY, None, who=who)


def person(role: callers.Role) -> callers.Actor:
    who = callers.Caller("acc_1", "cred_1", callers.Scheme.TOKEN, callers.ROLE_PERMISSIONS[role], user_id="usr_1")
    return callers.Actor(callers.ActorKind.PERSON, "usr_1", who=who)


def test_a_key_gives_the_scopes_that_it_has() -> None:
    grants.check_key(key(SEND, TEAM), frozenset({SEND, TEAM}))
    grants.check_key(key(SEND, TEAM), frozenset({SEND}))
    grants.check_key(key(*callers.Scope), callers.SCOPES)


@pytest.mark.parametrize("scopes, missing", [({READ}, "read"), ({SEND, READ}, "read"), (set(callers.Scope), "read")])
def test_a_key_gives_no_scope_that_it_does_not_have(scopes: set[callers.Scope], missing: str) -> None:
    with pytest.raises(errors.Forbidden, match=f"^this API key does not have the scope '{missing}', so it cannot give"):
        grants.check_key(key(SEND, TEAM), frozenset(scopes))


def test_a_key_creates_only_keys_of_its_own_credential() -> None:
    assert grants.credential_of_key(key(TEAM), None) == "cred_1"
    assert grants.credential_of_key(key(TEAM), "cred_1") == "cred_1"
    with pytest.raises(errors.Forbidden, match=r"^credential_id: "):
        grants.credential_of_key(key(TEAM), "cred_2")
    assert grants.credential_of_key(person(callers.Role.DEVELOPER), "cred_2") == "cred_2"
    assert grants.credential_of_key(callers.OPERATOR, None) is None


def test_a_credential_sends_and_reads_so_only_a_key_with_both_creates_one() -> None:
    grants.check_credential(key(SEND, READ, TEAM))
    for scopes in ((TEAM,), (SEND, TEAM), (READ, TEAM)):
        with pytest.raises(errors.Forbidden, match="cannot give it to an SMTP credential"):
            grants.check_credential(key(*scopes))


def test_a_user_sees_everything_so_only_a_key_with_every_scope_gives_users_rights() -> None:
    grants.check_user(key(*callers.Scope))
    for missing in sorted(callers.SCOPES):
        with pytest.raises(errors.Forbidden, match=f"does not have the scope '{missing}'"):
            grants.check_user(key(*(scope for scope in callers.Scope if scope is not missing)))


def test_only_an_owner_creates_keys_that_manage_users() -> None:
    grants.check_key(person(callers.Role.OWNER), callers.SCOPES)
    grants.check_key(person(callers.Role.DEVELOPER), callers.SCOPES - {TEAM})
    for scopes in (callers.SCOPES, frozenset({TEAM})):
        with pytest.raises(errors.Forbidden, match=r"^scopes: only an owner"):
            grants.check_key(person(callers.Role.DEVELOPER), scopes)


def test_people_and_operators_grant_as_their_role_permits() -> None:
    for actor in (person(callers.Role.OWNER), callers.OPERATOR, callers.SERVICE):
        grants.check_key(actor, callers.SCOPES)
        grants.check_credential(actor)
        grants.check_user(actor)
