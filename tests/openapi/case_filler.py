"""What a schema cannot say: which values exist, and which may be used only once.

Generated requests are right in form, but name senders, templates and ids that nobody has. `CaseFiller.fill` puts in
their place what the service under test has, and leaves everything else as it was generated, above all what was
generated to be wrong. What the tests themselves stand on (their credential, domain and template) is never removed: a
request to do so is pointed at something made for it.
"""

import collections
import copy
import itertools
import re
import secrets
import string
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from schemathesis import Case, Response

from postroad.model.mail import limits
from postroad.model.search import search_query
from postroad.model.units import destinations, identifiers, times
from postroad.protocol.mime import address
from postroad.services.people import passwords, second_factors
from tests.openapi import bodies

# Names the file that holds the `ServiceFacts` of a run.
VARIABLE = "TESTS_OPENAPI_SERVICE_FACTS"
ALIAS = re.compile(limits.TEMPLATE_ALIAS_PATTERN)
URL = re.compile(r"https?://", re.IGNORECASE)
IDENTIFIER = re.compile(rf"[a-z]+_{identifiers.PATTERN}")
# The one operation here that takes no credential.
LOG_IN = "POST /v1/auth/login"
FILE = "GET /v1/inbound/attachments/{token}"
# An endpoint that the service under test allows. Nobody is there, which is an answer as well.
ENDPOINT_URL = "https://127.0.0.2:9/hook"
SUPPRESSED = "suppressed@example.net"
PLACEHOLDERS = ("name",)
# Well below the most that an account may have.
PEOPLE = 100
MESSAGE = {"to": "ada@example.org", "subject": "Hello", "text": "Hi"}
# A bound for a machine that is busy with other tests.
TIMEOUT_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """A running service, and who may call it. The password of the second user changes while tests run.

    With `members_alone`, the rules between members are left out of the schema, so that every member is brought to each
    of its bounds; requests are then completed to keep those rules.
    """

    base_url: str
    domain: str
    owner: str
    basic: str
    api_key: str
    reading_key: str
    email: str
    changing_email: str
    password: str
    waiting_message: str
    waiting_recipients: Sequence[str]
    received: Sequence[str]
    members_alone: bool = False


class CaseFiller:
    """Knows what a running service has, and learns from its answers."""

    def __init__(self, given: ServiceFacts) -> None:
        self._given = given
        self._client = httpx.Client(base_url=given.base_url, timeout=TIMEOUT_SECONDS)
        self._run = uuid.uuid4().hex[:8]
        self._numbers = itertools.count()
        self._replays: collections.Counter[str] = collections.Counter()
        self._schemes = {
            "POST /emails": itertools.cycle([given.basic, given.api_key, given.owner]),
            "GET /emails/{id}": itertools.cycle([given.basic, given.reading_key, given.owner]),
        }
        self._password = given.password
        self._waiting = iter(given.waiting_recipients)
        self._received, *disposable = given.received
        self._disposable_mail = itertools.chain(disposable, itertools.repeat(self._received))
        self._token = self._log_in()
        self._test_key = f"Bearer {self._made('POST', '/v1/api-keys', {'name': 'test', 'mode': 'test'})['secret']}"
        self._message = str(self._made("POST", "/emails", MESSAGE | {"from": f"shop@{given.domain}"})["id"])
        credentials, api_keys, domains = (self._listed(name) for name in ("credentials", "api-keys", "domains"))
        self._credential, self._domain = credentials[0], domains[0]
        # Removing one of these would end the tests, not the thing.
        self._kept = {*credentials, *api_keys, *domains, *self._people(), bodies.TEMPLATE, SUPPRESSED, self._received}
        self._suppress(SUPPRESSED)
        self._known = {self._message, *self._kept}
        self._ways: dict[str, Callable[[Case[Any]], None]] = {
            "POST /emails": self._send,
            "POST /emails/batch": self._send_batch,
            "GET /emails/{id}": lambda case: self._point(case, "id", self._message),
            "PATCH /emails/{id}": self._move,
            "POST /emails/{id}/cancel": lambda case: self._use_disposable(case, self._new_scheduled),
            "GET /v1/messages": self._search,
            "GET /v1/messages/{id}": lambda case: self._point(case, "id", self._message),
            "GET /v1/messages/{id}/raw": lambda case: self._point(case, "id", self._message),
            "POST /v1/messages/{id}/resend": self._resend,
            "GET /v1/messages/{id}/checks": lambda case: self._point(case, "id", self._message),
            "POST /v1/messages/{id}/retry": self._retry,
            "POST /v1/test-email": self._send_test,
            LOG_IN: self._open_session,
            "POST /v1/auth/logout": self._close_session,
            "POST /v1/auth/confirm": self._confirm,
            "POST /v1/auth/password": self._change_password,
            "PATCH /v1/account": self._require_nothing,
            "POST /v1/api-keys": self._limit_key,
            "GET /v1/credentials/{id}": lambda case: self._point(case, "id", self._credential),
            "DELETE /v1/credentials/{id}": lambda case: self._use_disposable(case, self._new_credential),
            "PATCH /v1/api-keys/{id}": self._change_key,
            "DELETE /v1/api-keys/{id}": lambda case: self._use_disposable(case, self._new_api_key),
            "GET /v1/domains/{id}": lambda case: self._point(case, "id", self._domain),
            "PATCH /v1/domains/{id}": lambda case: self._point(case, "id", self._domain),
            "DELETE /v1/domains/{id}": lambda case: self._use_disposable(case, self._new_domain),
            "GET /v1/inbound/{id}": lambda case: self._point(case, "id", self._received),
            "GET /v1/inbound/{id}/raw": lambda case: self._point(case, "id", self._received),
            "DELETE /v1/inbound/{id}": lambda case: self._use_disposable(case, lambda: next(self._disposable_mail)),
            FILE: self._follow_link,
            "POST /v1/inbound/routes": self._name_route,
            "GET /v1/inbound/routes/{id}": lambda case: self._use_disposable(case, self._new_route),
            "DELETE /v1/inbound/routes/{id}": lambda case: self._use_disposable(case, self._new_route),
            "POST /v1/inbound/routes/{id}/check": lambda case: self._use_disposable(case, self._new_route),
            "GET /v1/suppressions/{email}": lambda case: self._point(case, "email", SUPPRESSED),
            "DELETE /v1/suppressions/{email}": lambda case: self._use_disposable(case, self._new_suppression),
            "POST /v1/suppressions/import": self._import,
            "GET /v1/templates/{alias}": lambda case: self._point(case, "alias", bodies.TEMPLATE),
            "PUT /v1/templates/{alias}": self._spare,
            "DELETE /v1/templates/{alias}": lambda case: self._use_disposable(case, self._new_template),
            "POST /v1/templates/{alias}/preview": self._preview,
            "PATCH /v1/team/{id}": lambda case: self._use_disposable(case, self._new_person),
            "DELETE /v1/team/{id}": lambda case: self._use_disposable(case, self._new_person),
            "POST /v1/team/{id}/password-link": lambda case: self._use_disposable(case, self._new_person),
            "POST /v1/team/{id}/recovery-link": lambda case: self._use_disposable(case, self._new_person),
            "PUT /v1/webhook": self._name_endpoint,
            "DELETE /v1/webhook": lambda _: self._save_webhook(),
            "POST /v1/webhook/rotate-secret": lambda _: self._save_webhook(),
            "POST /v1/webhook/ping": lambda _: self._save_webhook(),
            "POST /v1/webhook/deliveries/replay": self._replay_failed,
            "GET /v1/webhook/deliveries/{id}": self._replay,
            "POST /v1/webhook/deliveries/{id}/replay": self._replay,
            "POST /v1/webhooks": self._name_endpoint,
            "GET /v1/webhooks/{webhook}": self._point_to_webhook,
            "PATCH /v1/webhooks/{webhook}": self._point_to_webhook,
            "DELETE /v1/webhooks/{webhook}": lambda case: self._use_disposable(case, self._new_webhook),
            "POST /v1/webhook-listeners/{id}/receive": self._receive,
            "POST /v1/webhooks/{webhook}/rotate-secret": self._point_to_webhook,
            "POST /v1/webhooks/{webhook}/ping": self._point_to_webhook,
            "GET /v1/webhooks/{webhook}/deliveries": self._point_to_webhook,
            "POST /v1/webhooks/{webhook}/deliveries/replay": self._replay_failed,
            "GET /v1/webhooks/{webhook}/deliveries/{id}": self._replay,
            "POST /v1/webhooks/{webhook}/deliveries/{id}/replay": self._replay,
        }

    def fill(self, case: Case[Any]) -> None:
        """Put in what exists, just before the request is sent."""
        label = case.operation.label
        if label not in self._ways:
            return
        if label not in (LOG_IN, FILE) and case.headers.get("Authorization") != self._given.owner:
            return  # a wrong credential is what this one is about
        if label in self._schemes:
            case.headers["Authorization"] = next(self._schemes[label])
        if isinstance(case.body, dict):
            case.body = copy.deepcopy(case.body)
        self._ways[label](case)

    def learn(self, case: Case[Any], response: Response) -> None:
        """Remember what a request has made, or changed."""
        if not 200 <= response.status_code < 300:
            return
        self._known.update(re.findall(r'"(?:id|alias)":"([^"]+)"', response.text))
        if case.operation.label == "POST /v1/auth/password" and isinstance(case.body, dict):
            self._password = str(case.body["new_password"])
            self._token = f"Bearer {response.json()['token']}"

    # What a single request needs.

    def _require_nothing(self, case: Case[Any]) -> None:
        """Those who log in here have no second factor, and could do nothing any more."""
        if isinstance(case.body, dict) and case.body.get("second_factor_required") is True:
            case.body["second_factor_required"] = False

    def _send(self, case: Case[Any]) -> None:
        self._renew_key(case)
        if not isinstance(case.body, dict):
            return
        if self._given.members_alone:
            bodies.complete(case.body)
        if case.body.get("simulate") is not None:
            case.headers["Authorization"] = self._test_key
        self._fill_send(case.body)

    def _send_batch(self, case: Case[Any]) -> None:
        """Items that cannot be accepted have errors of their own, unless the batch wants all or nothing."""
        self._renew_key(case)
        if not isinstance(case.body, dict):
            return
        if case.body.get("all_or_nothing") is True:
            case.body["all_or_nothing"] = False
        recipients = case.body.get("recipients")
        for one in recipients if isinstance(recipients, list) else ():
            if isinstance(one, dict):
                bodies.keep_numbers_small(one)
        emails = case.body.get("emails")
        for one in emails if isinstance(emails, list) else ():
            if isinstance(one, dict):
                self._fill_send(one)

    def _renew_key(self, case: Case[Any]) -> None:
        key = case.headers.get("Idempotency-Key")
        if isinstance(key, str) and 1 <= len(key.strip(" \t")) <= limits.IDEMPOTENCY_KEY_CHARACTERS:
            fresh = f"{self._run}-{next(self._numbers)}-{key}"
            case.headers["Idempotency-Key"] = fresh[: limits.IDEMPOTENCY_KEY_CHARACTERS]

    def _fill_send(self, body: dict[str, Any]) -> None:
        sender = body.get("from")
        if isinstance(sender, str) and bodies.is_address(sender):
            body["from"] = bodies.from_domain(sender, self._given.domain)
        if _is_alias(body.get("template")):
            body["template"] = bodies.TEMPLATE
            bodies.give_variables(body, PLACEHOLDERS)
        bodies.keep_numbers_small(body)
        bodies.come_soon(body)
        bodies.tell_inline_images_apart(body)
        bodies.shorten_headers(body)
        bodies.keep_unique_recipients(body)

    def _move(self, case: Case[Any]) -> None:
        self._use_disposable(case, self._new_scheduled)
        if isinstance(case.body, dict):
            bodies.come_soon(case.body)

    def _retry(self, case: Case[Any]) -> None:
        """Name a recipient that waits, as long as there are some; who names none has all of them tried."""
        self._point(case, "id", self._given.waiting_message)
        if isinstance(case.body, dict) and _is_identifier(case.body.get("recipient_id")):
            case.body["recipient_id"] = next(self._waiting, None)

    def _resend(self, case: Case[Any]) -> None:
        """Name a message that has ended, and none of its recipients."""
        self._renew_key(case)
        self._use_disposable(case, self._new_canceled)
        if isinstance(case.body, dict) and _is_identifier(case.body.get("recipient_id")):
            case.body["recipient_id"] = None

    def _send_test(self, case: Case[Any]) -> None:
        if not isinstance(case.body, dict):
            return
        sender = case.body.get("from")
        if isinstance(sender, str) and bodies.is_address(sender):
            case.body["from"] = bodies.from_domain(sender, self._given.domain)

    def _open_session(self, case: Case[Any]) -> None:
        # Sometimes a stranger knocks; too many of them in a row would be slowed, and the rest of the tests with them.
        is_stranger = next(self._numbers) % 4 == 0
        if isinstance(case.body, dict) and _is_password(case.body.get("password")) and not is_stranger:
            email = case.body.get("email")
            if isinstance(email, str) and len(email) <= address.MAX_CHARACTERS:
                case.body["email"] = self._given.email
            case.body["password"] = self._given.password

    def _close_session(self, case: Case[Any]) -> None:
        case.headers["Authorization"] = self._log_in()

    def _confirm(self, case: Case[Any]) -> None:
        """With the password: the owner has no authenticator app."""
        case.headers["Authorization"] = self._token
        if not isinstance(case.body, dict) or case.body.keys() - {"password", "code"}:
            return
        password, code = case.body.get("password"), case.body.get("code")
        is_code = isinstance(code, str) and len(code) <= second_factors.MAX_CODE_CHARACTERS
        if (code is None and _is_password(password)) or (password is None and is_code):
            case.body = {"password": self._password}

    def _change_password(self, case: Case[Any]) -> None:
        case.headers["Authorization"] = self._token
        if not isinstance(case.body, dict):
            return
        if _is_password(case.body.get("current_password")):
            case.body["current_password"] = self._password
        new = case.body.get("new_password")
        if isinstance(new, str) and _is_password(new):
            # Of the same length, but neither common nor a pattern, which no schema can say.
            mixed = "".join(secrets.SystemRandom().sample(string.ascii_letters, len(string.ascii_letters)))
            case.body["new_password"] = (mixed + secrets.token_urlsafe(passwords.MAX_CHARACTERS))[: len(new)]

    def _limit_key(self, case: Case[Any]) -> None:
        if not isinstance(case.body, dict):
            return
        if _is_identifier(case.body.get("credential_id")):
            case.body["credential_id"] = self._credential
        if _is_time(case.body.get("expires_at")):
            case.body["expires_at"] = "2036-12-31T00:00:00Z"
        if case.body.get("mode") == "test" and "scopes" in case.body:
            case.body["mode"] = "live"  # a test key cannot have all scopes, which no schema says

    def _change_key(self, case: Case[Any]) -> None:
        self._use_disposable(case, self._new_api_key)
        self._limit_key(case)

    def _name_route(self, case: Case[Any]) -> None:
        """At a domain of the account, and forward to it if at all."""
        if isinstance(case.body, dict) and "@" in str(case.body.get("match")):
            case.body["match"] = f"route-{next(self._numbers)}@{self._given.domain}"
            if case.body.get("forward_to") is not None or case.body.get("action") == "forward":
                case.body |= {"action": "forward", "forward_to": f"help@{self._given.domain}"}

    def _new_route(self) -> str:
        match = f"route-{next(self._numbers)}@{self._given.domain}"
        return str(self._made("POST", "/v1/inbound/routes", {"match": match})["route"]["id"])

    def _follow_link(self, case: Case[Any]) -> None:
        headers = {"Authorization": self._given.owner}
        found = self._client.get(f"/v1/inbound/{self._received}", headers=headers).json()
        if next(self._numbers) % 4:
            case.path_parameters["token"] = str(found["message"]["attachments"][0]["url"]).rpartition("/")[2]

    def _spare(self, case: Case[Any]) -> None:
        if case.path_parameters.get("alias") == bodies.TEMPLATE:
            case.path_parameters["alias"] = f"{bodies.TEMPLATE}-{next(self._numbers)}"
        if isinstance(case.body, dict):
            bodies.close_sections(case.body)

    def _preview(self, case: Case[Any]) -> None:
        self._point(case, "alias", bodies.TEMPLATE)
        if isinstance(case.body, dict):
            bodies.keep_numbers_small(case.body)
            bodies.give_variables(case.body, self._placeholders(case.path_parameters.get("alias")))

    def _import(self, case: Case[Any]) -> None:
        """A schema knows of texts, and not of tables."""
        if isinstance(case.body, str) and case.headers.get("Content-Type", "text/csv").startswith("text/csv"):
            case.body = f"email,reason\r\n{next(self._numbers)}@example.net,generated\r\n"

    def _name_endpoint(self, case: Case[Any]) -> None:
        if not isinstance(case.body, dict):
            return
        url = case.body.get("url")
        if isinstance(url, str) and URL.match(url) and len(url) <= destinations.MAX_URL_CHARACTERS:
            case.body["url"] = ENDPOINT_URL

    def _replay_failed(self, case: Case[Any]) -> None:
        """A schema knows of times, and not that one comes before the other."""
        self._save_webhook()
        self._point_to_webhook(case)
        if isinstance(case.body, dict) and all(_is_time(case.body.get(name)) for name in ("after", "before")):
            case.body |= {"after": "2026-01-01T00:00:00Z", "before": "2026-01-02T00:00:00Z"}

    def _replay(self, case: Case[Any]) -> None:
        """Name a delivery that is there: what another request has made may have gone with its webhook."""
        self._replays[case.operation.label] += 1
        if _is_name(case.path_parameters.get("id"), "id") and self._replays[case.operation.label] % 4:
            case.path_parameters["id"] = self._delivery()
            if "webhook" in case.path_parameters:
                case.path_parameters["webhook"] = self._first_webhook()

    def _point_to_webhook(self, case: Case[Any]) -> None:
        """Name the first endpoint, which may have been removed meanwhile; and a URL that is allowed."""
        self._name_endpoint(case)
        self._save_webhook()
        self._point(case, "webhook", self._first_webhook())

    def _receive(self, case: Case[Any]) -> None:
        """Name a listener, and do not wait for events that nobody makes."""
        self._point(case, "id", self._listener())
        if isinstance(case.body, dict) and case.body.get("wait_seconds") in (2, 3, 4, 5):
            case.body["wait_seconds"] = 0

    def _first_webhook(self) -> str:
        return self._webhooks()[0]

    def _new_webhook(self) -> str:
        """One to remove."""
        self._make_room()
        return str(self._made("POST", "/v1/webhooks", {"url": ENDPOINT_URL})["webhook"]["id"])

    def _listener(self) -> str:
        """One that is there, or a new one: what another request has made is still needed."""
        listed = self._client.get("/v1/webhooks", headers={"Authorization": self._given.owner}).json()["webhooks"]
        found = [webhook["id"] for webhook in listed if webhook["url"] == "listen:"]
        if not found:
            self._make_room()
            found.append(self._made("POST", "/v1/webhook-listeners", {"events": ["email.bounced"]})["webhook"]["id"])
        return str(found[0])

    def _make_room(self) -> None:
        """The first webhook stays, with its log; the others go before the quota is reached."""
        self._save_webhook()
        for other in self._webhooks()[1:]:
            self._client.delete(f"/v1/webhooks/{other}", headers={"Authorization": self._given.owner})

    def _webhooks(self) -> list[str]:
        listed = self._client.get("/v1/webhooks", headers={"Authorization": self._given.owner}).json()
        return [webhook["id"] for webhook in listed["webhooks"]]

    def _point(self, case: Case[Any], name: str, existing: str) -> None:
        """Name something that exists; every fourth time, what was generated stays, and is not found."""
        given = case.path_parameters.get(name)
        if _is_name(given, name) and given not in self._known and next(self._numbers) % 4:
            case.path_parameters[name] = existing

    @staticmethod
    def _search(case: Case[Any]) -> None:
        """A search has a language of its own; one that is too long stays."""
        given = case.query.get("search")
        if isinstance(given, str) and len(given) <= search_query.MAX_CHARACTERS:
            try:
                search_query.parse(given)
            except search_query.QueryError:
                case.query["search"] = "to:@example.org -tag:x hello OR status:queued"

    def _use_disposable(self, case: Case[Any], make: Callable[[], str]) -> None:
        """Remove something made for it, unless the request names what another one has made."""
        (name,) = case.path_parameters or ("",)
        given = case.path_parameters.get(name)
        is_unknown = _is_name(given, name) and given not in self._known and next(self._numbers) % 4
        if given in self._kept or is_unknown:
            case.path_parameters[name] = make()

    # What a single request may use up.

    def _new_scheduled(self) -> str:
        message = MESSAGE | {"from": f"shop@{self._given.domain}", "send_at": bodies.soon()}
        return str(self._made("POST", "/emails", message)["id"])

    def _new_canceled(self) -> str:
        return str(self._made("POST", f"/emails/{self._new_scheduled()}/cancel", {})["id"])

    def _new_credential(self) -> str:
        return str(self._made("POST", "/v1/credentials", {"name": "to be revoked"})["credential"]["id"])

    def _new_api_key(self) -> str:
        return str(self._made("POST", "/v1/api-keys", {"name": "to be revoked"})["api_key"]["id"])

    def _new_domain(self) -> str:
        name = f"removed-{self._run}-{next(self._numbers)}.example"
        return str(self._made("POST", "/v1/domains", {"name": name})["domain"]["id"])

    def _new_template(self) -> str:
        path = f"/v1/templates/removed-{self._run}-{next(self._numbers)}"
        return str(self._made("PUT", path, {"subject": "Hello", "text": "Hi"})["template"]["alias"])

    def _new_person(self) -> str:
        """A user to change or remove. The users of an account are limited: when it is nearly full, some are removed."""
        known, headers = self._people(), {"Authorization": self._given.owner}
        for person in set(known) - self._kept if len(known) > PEOPLE else ():
            self._client.delete(f"/v1/team/{person}", headers=headers)
        email = f"removed-{self._run}-{next(self._numbers)}@example.net"
        return str(self._made("POST", "/v1/team", {"email": email, "role": "developer"})["user"]["id"])

    def _people(self) -> list[str]:
        """The ids of everybody of the account."""
        listed = self._client.get("/v1/team", headers={"Authorization": self._given.owner}).json()
        return [person["id"] for person in listed["users"]]

    def _new_suppression(self) -> str:
        email = f"removed-{self._run}-{next(self._numbers)}@example.net"
        self._suppress(email)
        return email

    def _suppress(self, email: str) -> None:
        """Put an address onto the list, unless it is there from another run."""
        headers = {"Authorization": self._given.owner}
        response = self._client.post("/v1/suppressions", json={"email": email}, headers=headers)
        assert response.status_code in {201, 409}, response.text

    def _save_webhook(self) -> None:
        self._made("PUT", "/v1/webhook", {"url": ENDPOINT_URL})

    def _delivery(self) -> str:
        """One of the log; when that is empty, a new one, for which the last ping must be some seconds ago."""
        self._save_webhook()
        headers = {"Authorization": self._given.owner}
        for one in self._client.get("/v1/webhook/deliveries?limit=1", headers=headers).json()["deliveries"]:
            return str(one["id"])
        while (pinged := self._client.post("/v1/webhook/ping", headers=headers)).status_code == 429:
            time.sleep(int(pinged.headers["Retry-After"]))
        return str(pinged.json()["delivery"]["id"])

    def _made(self, method: str, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        headers = {"Authorization": self._given.owner, "Idempotency-Key": f"made-{uuid.uuid4()}"}
        response = self._client.request(method, path, json=body, headers=headers)
        assert response.status_code in {200, 201, 202}, response.text
        made: dict[str, Any] = response.json()
        return made

    def _listed(self, name: str) -> list[str]:
        """The ids of what there is of a kind, oldest first."""
        listed = self._client.get(f"/v1/{name}", headers={"Authorization": self._given.owner}).json()
        return [one["id"] for one in listed[name.replace("-", "_")]]

    def _placeholders(self, alias: object) -> Sequence[str]:
        """What a template needs values for, whoever has made it."""
        if not _is_alias(alias):
            return ()
        found = self._client.get(f"/v1/templates/{alias}", headers={"Authorization": self._given.owner}).json()
        return [str(name) for name in found.get("template", {}).get("placeholders", ())]

    def _log_in(self) -> str:
        """A session of the user whose password changes."""
        body = {"email": self._given.changing_email, "password": self._password}
        response = self._client.post("/v1/auth/login", json=body)
        assert response.status_code == 200, response.text
        return f"Bearer {response.json()['token']}"


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and times.parse(value) >= 0
    except ValueError:
        return False


def _is_alias(value: object) -> bool:
    return isinstance(value, str) and ALIAS.fullmatch(value) is not None


def _is_identifier(value: object) -> bool:
    return isinstance(value, str) and IDENTIFIER.fullmatch(value) is not None


def _is_name(value: object, parameter: str) -> bool:
    known = {"alias": _is_alias, "email": bodies.is_address}
    return known.get(parameter, _is_identifier)(value)


def _is_password(value: object) -> bool:
    return isinstance(value, str) and len(value) <= passwords.MAX_CHARACTERS and "\0" not in value
