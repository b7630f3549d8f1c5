"""What an actor may grant to others: never more than it has itself.

A key with the scope `team` may create API keys, SMTP credentials and users. Each of them acts without the key, also
after it is revoked, so it must not be able to do what the key cannot. A user without the permission to manage users may
not create a key that manages them, and only owners and operators add or change owners. Operators grant everything, but
a key with limits makes no operators.
"""

from typing import Final

from postroad import errors
from postroad.model.people import callers

# A username and password send and read.
CREDENTIAL_SCOPES: Final = frozenset({callers.Scope.SEND, callers.Scope.READ})


def check_key(
    actor: callers.Actor,
    scopes: frozenset[callers.Scope],
    limits: callers.KeyLimits = callers.NO_LIMITS,
    *,
    key_id: str | None = None,
) -> None:
    """Refuse to create a key with more than the actor has, or to change the one with this id so that it has more."""
    key = _key_of(actor)
    if key is not None:
        _check_scopes(key, scopes, what="an API key")
        _check_limits(key, scopes, limits, is_itself=key.id == key_id)
    elif callers.Scope.OPERATOR in scopes and actor.who is not None and not may_operate(actor.who):
        raise errors.Forbidden("scopes: only an operator of this installation can give a key the scope 'operator'")
    elif (
        actor.kind is callers.ActorKind.PERSON
        and callers.Scope.TEAM in scopes
        and not (actor.who is not None and callers.Permission.MANAGE in actor.who.permissions)
    ):
        raise errors.Forbidden(
            "scopes: only an owner or an admin of this account can give a key the scope 'team' or '*'"
        )


def may_operate(who: callers.Caller) -> bool:
    scopes = frozenset[callers.Scope]() if who.key is None else who.key.scopes
    return callers.Permission.OPERATE in who.permissions or callers.Scope.OPERATOR in scopes


def credential_of_key(actor: callers.Actor, credential_id: str | None) -> str | None:
    """The credential of a new key: keys that a key creates belong to its own, so that they are revoked with it."""
    own = None if _key_of(actor) is None or actor.who is None else actor.who.credential_id
    if own is not None and credential_id not in {None, own}:
        raise errors.Forbidden("credential_id: an API key can only create keys of its own SMTP credential")
    return own or credential_id


def check_credential(actor: callers.Actor) -> None:
    """Refuse to create an SMTP credential with a key that has less."""
    key = _key_of(actor)
    if key is not None:
        _check_scopes(key, CREDENTIAL_SCOPES, what="an SMTP credential")
        _check_unlimited(key, what="an SMTP credential")


def check_user(actor: callers.Actor) -> None:
    """Refuse to give rights to a user, who sees everything of the account, with a key that has less than everything."""
    key = _key_of(actor)
    if key is not None:
        _check_scopes(key, callers.SCOPES, what="a user")
        _check_unlimited(key, what="a user")


def check_owner(actor: callers.Actor, role: str | None) -> None:
    """Refuse to add or change an owner unless the actor is an owner or an operator.

    `role` is the one that the acting user has now. An API key has none: otherwise an admin, who can create one with
    every scope, could act as an owner.
    """
    is_asked = actor.kind in {callers.ActorKind.PERSON, callers.ActorKind.API_KEY}
    if is_asked and (role is None or callers.Permission.OWN not in callers.ROLE_PERMISSIONS[callers.Role(role)]):
        raise only_owners()


def only_owners() -> errors.Forbidden:
    return errors.Forbidden("only an owner of this account, logged in as a user, can add, change or remove owners")


def check_operator(actor: callers.Actor) -> None:
    """Refuse to make an operator with a key that has limits: a person has none, and stays when the key ends."""
    if actor.who is not None and actor.who.key is not None:
        _check_unlimited(actor.who.key, what="an operator")


def check_template(actor: callers.Actor) -> None:
    """Refuse to change templates with a key that may only send some of them: it could then send anything."""
    key = _key_of(actor)
    if key is not None and key.limits.templates and callers.Scope.SEND in key.scopes:
        raise errors.Forbidden(
            f"this API key may only send the templates {', '.join(key.limits.templates)}, so it cannot change "
            "templates; use a key that does not send, or log in"
        )


def _check_scopes(key: callers.ApiKey, scopes: frozenset[callers.Scope], *, what: str) -> None:
    missing = [scope for scope in callers.Scope if scope in scopes - key.scopes]
    if missing:
        raise errors.Forbidden(
            f"this API key does not have the scope '{missing[0]}', so it cannot give it to {what}; use a key that "
            "has it, or log in"
        )


def _check_limits(
    key: callers.ApiKey, scopes: frozenset[callers.Scope], limits: callers.KeyLimits, *, is_itself: bool
) -> None:
    member = callers.exceeded_limit(limits, key.limits)
    if member is not None:
        raise errors.Forbidden(f"{member}: this API key is limited, and cannot give more than it has")
    if callers.Scope.SEND in scopes and key.limits.is_counted and not is_itself:
        raise errors.Forbidden(
            "scopes: this API key has a limit of recipients or credits, so it cannot create keys that send: together "
            "they could send more"
        )


def _check_unlimited(key: callers.ApiKey, *, what: str) -> None:
    if key.limits != callers.NO_LIMITS:
        raise errors.Forbidden(
            f"this API key has limits, which {what} would not have; use a key without limits, or log in"
        )


def _key_of(actor: callers.Actor) -> callers.ApiKey | None:
    return None if actor.who is None or actor.kind is callers.ActorKind.OPERATOR else actor.who.key
