"""Requests from a seed: most of them sends, valid and invalid in every member, header field and framing.

`@@kind:name@@` stands for a secret of the service that gets the request (`services`), and `@@message:12@@` for the id
of the message that conversation 12 made.
"""

import base64
import contextlib
import datetime as dt
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.differential import bodies, smtp_sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The bytes of one request or several, in the segments in which they are sent, and what to wait for."""

    label: str
    segments: Sequence[bytes]
    # Of the HTTP requests in it, one for each response.
    methods: Sequence[str] = ()
    is_smtp: bool = False
    is_new_connection: bool = False
    # Whether the server closes the connection after the last response.
    closes: bool = False


KEYS: Final = (
    *("key:shop",) * 30,
    *("key:all", "key:send", "key:test", "key:test", "key:test", "key:read", "key:domains", "key:templates"),
    *("key:networks", "key:daily", "key:budget", "key:approval", "key:poor", "key:suspended", "key:few"),
)
# Of the accounts beside the first.
DOMAINS: Final = {
    "key:domains": "second.example.com",
    **{f"key:{account}": f"{account}.example.com" for account in ("poor", "suspended", "few")},
}
PATHS: Final = (
    *("/", "/emails", "/emails/", "/emails/x", "/emails/em_0", "/Emails", "//emails", "/emails?x=1", "/emails/%65m_1"),
    *("/emails/em_" + "0" * 28, "/emails/em_" + "0" * 28 + "/cancel", "/emails/batch", "/v1", "/v1/", "/v1/nothing"),
    *(
        "/v1/account",
        "/v1/account/ledger",
        "/v1/messages",
        "/v1/messages?limit=3",
        "/v1/messages?limit=x",
        "/v1/templates",
    ),
    *("/v1/messages?status=queued&limit=2", "/v1/messages?nothing=1", "/v1/domains", "/v1/credentials", "/v1/team"),
    *(
        "/v1/suppressions",
        "/v1/statistics",
        "/v1/webhook",
        "/v1/webhooks",
        "/v1/audit-log",
        "/v1/auth/me",
        "/v1/event-schemas",
    ),
    *(
        "/v1/api-keys",
        "/v1/operator/accounts",
        "/v1/operator/health",
        "/v1/inbox",
        "/openapi.json",
        "/docs",
        "/healthz",
    ),
    *(
        "/login",
        "/messages",
        "/domains",
        "/templates",
        "/settings",
        "/static/nothing.css",
        "/favicon.ico",
        "/robots.txt",
    ),
    *("/compat/resend/emails", "/compat/resend/domains", "/compat/postmark/server", "/compat/postmark/nothing", "/mcp"),
    *("/.well-known/acme-challenge/x", "/%00", "/%zz", "/é", "/" + "x" * 3000, "*", "http://postroad.test/emails"),
)


def conversations(chance: random.Random, count: int) -> Iterator[Conversation]:
    """So many, the same for the same seed."""
    # Times near now: a send may be scheduled for the next 30 days.
    make = Generator(chance, now=dt.datetime.now(dt.UTC).replace(microsecond=0))
    for number in range(count):
        yield make.conversation(number)


class Generator:
    """Makes one conversation after the other, and remembers what a later one can repeat."""

    def __init__(self, chance: random.Random, *, now: dt.datetime) -> None:
        self._chance = chance
        self._now = now
        self._number = 0
        # Sends with their idempotency keys, for replays, and the conversations that may have made a message.
        self._sent: list[tuple[str, str, bytes]] = []
        self._messages: list[int] = []

    def conversation(self, number: int) -> Conversation:
        """The next one."""
        self._number = number
        kinds: tuple[tuple[int, Callable[[], Conversation]], ...] = (
            (50, self._send),
            (10, self._replay),
            (8, self._send_with_odd_fields),
            (6, self._odd_framing),
            (4, self._large),
            (4, self._batch),
            (12, self._read_message),
            (8, self._other_path),
            (3, self._compatible),
            (10, self._smtp),
        )
        weights, makers = zip(*kinds, strict=True)
        maker: Callable[[], Conversation] = self._chance.choices(makers, weights)[0]
        return maker()

    # Sends.

    def _send(self) -> Conversation:
        key, name = self._key(), self._chance.choice(KEYS)
        body = self._encoded_body(DOMAINS.get(name))
        self._messages.append(self._number)
        self._sent.append((key, name, body))
        return self._http("a send", [self._post("/emails", body, self._fields(key, name))])

    def _replay(self) -> Conversation:
        if not self._sent:
            return self._send()
        key, name, body = self._chance.choice(self._sent[-40:])
        what = self._chance.randrange(5)
        if what == 0:
            body = self._encoded_body()
        elif what == 1:
            name = self._chance.choice(KEYS)
        elif what == 2:
            # The same meaning in other bytes.
            with contextlib.suppress(ValueError, RecursionError):
                body = json.dumps(json.loads(body), sort_keys=True, indent=1).encode()
        return self._http(f"a replay, {what}", [self._post("/emails", body, self._fields(key, name))])

    def _send_with_odd_fields(self) -> Conversation:
        chance, key = self._chance, self._key()
        fields = self._fields(key, chance.choice(KEYS))
        password = base64.b64encode(b"smtp_nobody:wrong").decode()
        authorizations = (
            *(
                "Basic @@basic:shop@@",
                "basic @@basic:shop@@",
                "Basic  @@basic:shop@@",
                "Basic @@basic:shop@@=",
                "Basic",
            ),
            *("Basic @@basic:poor@@", "Basic @@basic:suspended@@", f"Basic {password}", "Basic !!!!", "Basic c210cF94"),
            *("Bearer @@token:shop@@", "Bearer @@token:reader@@", "Bearer @@token:shop@@x", "bearer @@key:shop@@"),
            *(
                "Bearer",
                "Bearer ",
                "Bearer x",
                "Bearer pr_live_" + "x" * 36,
                "Bearer @@key:shop@@ @@key:shop@@",
                "Digest x",
            ),
            *("@@key:shop@@", "Bearer \xe9\xff", "Bearer eyJhbGciOiJub25lIn0.e30.", "Bearer " + "x" * 4000, ""),
        )
        idempotency = ("", " ", "x" * 255, "x" * 256, "é", "\xff", "a b", "a\tb", "a,b", '"quoted"', "\x7f", "x" * 5000)
        types = (
            "text/plain",
            "application/json; charset=utf-8",
            "application/json;charset=latin-1",
            "",
            "json",
            "APPLICATION/JSON",
        )
        changes: tuple[tuple[str, Sequence[str]], ...] = (
            ("Authorization", authorizations),
            ("Idempotency-Key", idempotency),
            ("Content-Type", types),
            ("Content-Encoding", ("gzip", "identity", "")),
            (
                "X-Forwarded-For",
                ("", "x", "192.0.2.1, x", "2001:db8::1", "[2001:db8::1]:80", "192.0.2.1:99", "unknown"),
            ),
            ("Accept", ("text/html", "*/*", "")),
            ("Host", ("", "other.example", "a b")),
            ("X-" + "y" * 300, ("z" * 3000,)),
        )
        weights = (8, 6, 3, 1, 2, 1, 1, 1)
        for name, values in chance.choices(changes, weights, k=chance.choice((1, 1, 1, 2))):
            found = [place for place, (known, _) in enumerate(fields) if known == name]
            match chance.randrange(5) if found else 4:
                case 0:
                    del fields[found[0]]
                case 1:
                    fields.append((name, fields[found[0]][1]))
                case 2:
                    fields.append((name, chance.choice(values)))
                case _:
                    fields = [field for field in fields if field[0] != name] + [(name, chance.choice(values))]
        if chance.random() < 0.3:
            fields = [(chance.choice((name, name.lower(), name.upper())), value) for name, value in fields]
        chance.shuffle(fields)
        self._messages.append(self._number)
        return self._http("a send with odd fields", [self._post("/emails", self._encoded_body(), fields)])

    def _odd_framing(self) -> Conversation:  # noqa: C901, PLR0911, PLR0912 - a case for each oddity
        chance = self._chance
        body, fields = self._encoded_body(), self._fields(self._key(), "key:shop")
        request = self._post("/emails", body, fields)
        head = request[: len(request) - len(body)]
        what = chance.randrange(14)
        label = f"odd framing, {what}"
        match what:
            case 0 | 1:
                size = chance.choice((1, 7, 100, 5000))
                parts = [body[start : start + size] for start in range(0, min(len(body), 60 * size), size)]
                parts = parts if b"".join(parts) == body else [body]
                extension = chance.choice((b"", b";x=1"))
                chunks = [b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts] + [b"0\r\n\r\n"]
                head = head.replace(b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked")
                segments = [head + b"".join(chunks)] if what == 0 else [head, *chunks[:20], b"".join(chunks[20:])]
                return self._http(label, [b""], segments=segments)
            case 2:
                cuts = sorted(chance.sample(range(1, len(request)), min(6, len(request) - 1)))
                segments = [request[start:end] for start, end in zip([0, *cuts], [*cuts, len(request)], strict=True)]
                return self._http(label, [b""], segments=segments)
            case 3:
                head = head.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
                return self._http(label, [b""], segments=[head, body])
            case 4:
                head = head.replace(b"\r\n\r\n", b"\r\nExpect: something\r\n\r\n")
                return self._http(label, [b""], segments=[head + body])
            case 5:
                count = chance.randint(2, 6)
                requests = [
                    self._post("/emails", self._encoded_body(), self._fields(self._key(), "key:shop"))
                    for _ in range(count)
                ]
                if chance.random() < 0.5:
                    requests[1] = self._get("GET", "/emails/em_" + "0" * 28, self._read_fields())
                return self._http(
                    label, requests, methods=["GET" if item.startswith(b"GET") else "POST" for item in requests]
                )
            case 6:
                return self._http(label, [request.replace(b" HTTP/1.1", b" HTTP/1.0", 1)], closes=True)
            case 7:
                request = request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
                return self._http(label, [request], closes=True)
            case 8:
                method = chance.choice(("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"))
                return self._http(label, [request.replace(b"POST", method.encode(), 1)], methods=[method], is_new=True)
            case 9:
                # Less than was announced, and then the end: what is missing is the next request's.
                request = request.replace(
                    b"Content-Length: %d" % len(body), b"Content-Length: %d" % max(0, len(body) - 3)
                )
                return self._http(label, [request, b""], closes=True, is_new=True)
            case 10:
                length = chance.choice((b"-1", b"x", b"", b"1, 2", b"99999999999", b"20000000", b"0"))
                request = request.replace(b"Content-Length: %d" % len(body), b"Content-Length: " + length)
                return self._http(label, [request], closes=True, is_new=True)
            case 11:
                both = b"\r\nTransfer-Encoding: " + chance.choice(
                    (b"chunked", b"gzip", b"identity", b"chunked, chunked")
                )
                return self._http(
                    label, [request.replace(b"\r\n\r\n", both + b"\r\n\r\n", 1)], closes=True, is_new=True
                )
            case 12:
                version = chance.choice((b"HTTP/2.0", b"HTTP/1.2", b"HTTP/0.9", b"HTTX/1.1", b""))
                return self._http(label, [request.replace(b"HTTP/1.1", version, 1)], closes=True, is_new=True)
            case _:
                place = chance.randrange(len(head))
                damaged = head[:place] + chance.choice((b"\x00", b"\r", b"\n", b" ", b"\xff", b":")) + head[place:]
                return self._http(label, [damaged + body], closes=True, is_new=True)

    def _large(self) -> Conversation:
        chance = self._chance
        body = self._body()
        size = chance.choice((40_000, 70_000, 200_000, 270_000, 300_000, 1_100_000, 3_000_000))
        what = chance.randrange(4)
        if what == 0:
            body["text"] = chance.choice(("x", "é", "line\n")) * size
        elif what == 1:
            body["html"] = "<p>" + "paragraph " * (size // 10)
        elif what == 2:
            content = base64.b64encode(chance.randbytes(size * 3 // 4)).decode()
            body["attachments"] = [{"filename": "data.bin", "content": content}]
        else:
            body["unknown"] = "x" * size
        encoded = json.dumps(body).encode()
        if chance.random() < 0.05:
            encoded = encoded[:-1] + b" " * 15_000_000 + b"}"
        self._messages.append(self._number)
        request = self._post("/emails", encoded, self._fields(self._key(), chance.choice(("key:shop", "key:test"))))
        segments = [request] if chance.random() < 0.5 else [request[:5000], request[5000:50_000], request[50_000:]]
        return self._http(f"a large send of {len(encoded)} octets", [b""], segments=segments)

    def _batch(self) -> Conversation:
        chance = self._chance
        body: bodies.Body
        if chance.random() < 0.6:
            body = {"emails": [self._changed_body() for _ in range(chance.choice((0, 1, 2, 5, 20, 101)))]}
        else:
            people = [
                {"to": chance.choice(bodies.ADDRESSES), "variables": {"name": "Ada"}}
                for _ in range(chance.choice((1, 3, 10)))
            ]
            body = {
                "from": "shop@shop.example.com",
                "template": chance.choice(("welcome", "none")),
                "recipients": people,
            }
        if chance.random() < 0.4:
            body["all_or_nothing"] = chance.choice((True, False, None, 1))
        if chance.random() < 0.2:
            body[chance.choice(("subject", "tags", "unknown", "metadata"))] = chance.choice(("x", {"a": "b"}, None))
        encoded = json.dumps(body).encode()
        key, name = self._key(), chance.choice(KEYS)
        path = "/emails/batch"
        requests = [self._post(path, encoded, self._fields(key, name)) for _ in range(chance.choice((1, 1, 2)))]
        return self._http("a batch", requests, methods=["POST"] * len(requests))

    def _encoded_body(self, domain: str | None = None) -> bytes:
        chance = self._chance
        body = self._changed_body(domain) if chance.random() < 0.5 else self._body(domain)
        separators = chance.choice(((",", ":"), (", ", ": "), (" ,\n", "\t: ")))
        encoded = json.dumps(body, ensure_ascii=chance.random() < 0.5, separators=separators).encode(
            "utf-8", "surrogatepass"
        )
        return encoded if chance.random() < 0.9 else self._damaged(encoded)

    def _damaged(self, encoded: bytes) -> bytes:
        chance = self._chance
        place = chance.randrange(len(encoded))
        damages: tuple[Callable[[], bytes], ...] = (
            lambda: encoded[:place],
            lambda: encoded[:-1] + b',"subject":"again"}',
            lambda: encoded[:-1] + b',"to":"ada@example.net","to":"bob@example.net"}',
            lambda: encoded[:place] + b"\xff" + encoded[place:],
            lambda: encoded[:place] + b"\xed\xa0\x80" + encoded[place:],
            lambda: encoded[:-1] + b',"text":"\\ud800"}',
            lambda: encoded[:-1] + b',"variables":' + b'{"a":' * 600 + b"1" + b"}" * 600 + b"}",
            lambda: b"[" * 20_000,
            lambda: b"\xef\xbb\xbf" + encoded,
            lambda: encoded.decode("utf-8", "replace").encode("utf-16"),
            lambda: encoded + b"x",
            lambda: encoded + b"\n \t",
            lambda: encoded[:-1] + b',"a":NaN}',
            lambda: encoded[:-1] + b',"metadata":{"a":"1","a":"2"}}',
            lambda: encoded[:-1] + b',"expires_in":' + b"9" * 5000 + b"}",
            lambda: b"[" + encoded + b"]",
            lambda: b'"' + encoded.hex().encode() + b'"',
            lambda: b"",
            lambda: b"null",
            lambda: b"{}",
            lambda: encoded.replace(b'"', b"'"),
        )
        return chance.choice(damages)()

    def _body(self, domain: str | None = None) -> bodies.Body:
        domain = domain or self._chance.choice(("shop.example.com",) * 6 + ("second.example.com",))
        body: bodies.Body = {"from": f"mail@{domain}", "to": self._chance.choice(bodies.ADDRESSES), "subject": "Hello"}
        body[self._chance.choice(("text", "text", "html"))] = "Hello there."
        return body

    def _changed_body(self, domain: str | None = None) -> bodies.Body:
        chance, body = self._chance, self._body(domain)
        for change in chance.sample(bodies.CHANGES, chance.choice((1, 1, 2, 3, 5))):
            change(chance, body)
        if chance.random() < 0.15:
            body[chance.choice(bodies.MEMBERS)] = chance.choice(bodies.ODD_VALUES)
        if chance.random() < 0.05:
            body.pop(chance.choice(list(body)), None)
        if chance.random() < 0.1:
            delta = chance.choice((-86400, -3600, 3600, 86400, 29 * 86400, 31 * 86400))
            time = self._now + dt.timedelta(seconds=delta)
            formats = (
                "%Y-%m-%dT%H:%M:%SZ",
                "%Y-%m-%dT%H:%M:%S+02:00",
                "%Y-%m-%d %H:%M:%S",
                "%Y-%m-%dT%H:%M:%S",
                "%s",
                "soon",
            )
            body["send_at"] = time.strftime(chance.choice(formats))
        return body

    # Everything else.

    def _read_message(self) -> Conversation:
        chance = self._chance
        target = f"@@message:{chance.choice(self._messages)}@@" if self._messages else "em_1"
        path = chance.choice(
            ("/emails/{}",) * 5
            + ("/v1/messages/{}/raw",) * 6
            + tuple(f"/emails/{{}}{end}" for end in ("?include=queue", "?x=1", "/"))
        )
        method = chance.choice(("GET",) * 6 + ("HEAD", "DELETE"))
        fields = self._read_fields()
        if path.endswith("/raw"):
            fields = [("Host", "postroad.test"), ("Authorization", "Bearer @@key:all@@")]
        request = self._get(method, path.format(target), fields)
        if chance.random() < 0.15:
            what = chance.choice(("cancel", "reschedule", "nothing"))
            body = json.dumps(chance.choice(({"send_at": None}, {"send_at": "soon"}, {}))).encode()
            request = self._post(f"/emails/{target}/{what}", body, self._fields(self._key(), "key:shop"))
            method = "POST"
        return self._http("a message", [request], methods=[method])

    def _other_path(self) -> Conversation:
        chance = self._chance
        method = chance.choice(("GET",) * 8 + ("HEAD", "POST", "PUT", "DELETE", "OPTIONS"))
        path = chance.choice(PATHS)
        if method == "POST":
            request = self._post(path, chance.choice((b"{}", b"", b"x")), self._fields(self._key(), "key:all"))
        else:
            request = self._get(method, path, self._read_fields())
        return self._http(f"{method} {path[:60]}", [request], methods=[method], is_new=True)

    def _compatible(self) -> Conversation:
        chance, body = self._chance, self._changed_body()
        if chance.random() < 0.5:
            request = self._post(
                "/compat/resend/emails", json.dumps(body).encode(), self._fields(self._key(), "key:shop")
            )
        else:
            sent = {"From": body.get("from"), "To": body.get("to"), "Subject": body.get("subject"), "TextBody": "Hello"}
            fields = [*self._fields(self._key(), "key:shop"), ("X-Postmark-Server-Token", "@@key:shop@@")]
            request = self._post("/compat/postmark/email", json.dumps(sent).encode(), fields)
        self._messages.append(self._number)
        return self._http("a send as to another service", [request])

    def _key(self) -> str:
        return f"k{self._chance.randrange(10**12)}"

    def _fields(self, key: str, name: str) -> list[tuple[str, str]]:
        fields = [
            ("Host", "postroad.test"),
            ("Authorization", f"Bearer @@{name}@@" if self._chance.random() < 0.9 else "Basic @@basic:shop@@"),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", key),
        ]
        # Many networks, or guesses of one would be slowed down.
        subnet = f"{self._chance.choice((192, 198, 203))}.0.{self._chance.choice((2, 2, 3, 77))}"
        network = f"{subnet}.{self._chance.randrange(256)}"
        return [*fields, ("X-Forwarded-For", network)] if self._chance.random() < 0.8 else fields

    def _read_fields(self) -> list[tuple[str, str]]:
        names = (
            *("Bearer @@key:shop@@",) * 4,
            *("Bearer @@key:all@@", "Basic @@basic:shop@@", "Bearer @@token:shop@@", "Bearer @@token:reader@@"),
            *("Bearer @@key:send@@", "Bearer @@key:test@@", "Bearer x", ""),
        )
        authorization = self._chance.choice(names)
        address = f"198.51.{self._chance.randrange(256)}.{self._chance.randrange(256)}"
        fields = [("Host", "postroad.test"), ("X-Forwarded-For", address)]
        return [*fields, ("Authorization", authorization)] if authorization else fields

    def _post(self, path: str, body: bytes, fields: Sequence[tuple[str, str]]) -> bytes:
        return self._get("POST", path, [*fields, ("Content-Length", str(len(body)))]) + body

    def _get(self, method: str, path: str, fields: Sequence[tuple[str, str]]) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode(
            "utf-8" if self._chance.random() < 0.5 else "latin-1", "replace"
        )

    def _http(
        self,
        label: str,
        requests: Sequence[bytes],
        *,
        methods: Sequence[str] = (),
        segments: Sequence[bytes] = (),
        closes: bool = False,
        is_new: bool = False,
    ) -> Conversation:
        return Conversation(
            label=label,
            segments=segments or [b"".join(requests)],
            methods=methods or ["POST"] * len(requests),
            closes=closes,
            is_new_connection=is_new or closes or self._chance.random() < 0.1,
        )

    def _smtp(self) -> Conversation:
        self._messages.append(self._number)
        return Conversation(label="an SMTP session", segments=smtp_sessions.session(self._chance), is_smtp=True)
