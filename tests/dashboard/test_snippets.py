"""The snippets: run as they are copied, against a service that is served; those of other languages are parsed.

The programs with our own libraries are those of test_library_snippets.

Every client has to verify the certificate of the listener: each is given the test's authority from outside.
"""

import ast
import dataclasses
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from postroad import config
from postroad.dashboard.framework import snippets
from tests.submission import test_clients
from tests.submission.test_clients import Running, running

__all__ = ["running"]

QUEUED = re.compile(r"em_[0-9a-f]{28}")
# An address may hold what ends a string or begins a command in one language or another.
AWKWARD = "o'b\"r$(id)`\\n{}@example.net"


def place_of(running: Running, security: snippets.Security, *, recipient: str) -> snippets.SnippetContext:
    """What a page of this service would say."""
    smtp = running.smtp
    return snippets.SnippetContext(
        base_url=running.dev_info["base_url"],
        smtp=snippets.SmtpListener(smtp["host"], smtp["port"], security),
        sender="hello@example.com",
        recipient=recipient,
    )


def over_smtp(running: Running, security: snippets.Security, *, recipient: str) -> dict[str, str]:
    smtp = running.smtp
    where = place_of(running, security, recipient=recipient)
    return {
        one.title: one.text for one in snippets.over_smtp(where, username=smtp["username"], password=smtp["password"])
    }


def over_http(running: Running, *, recipient: str) -> dict[str, str]:
    where = place_of(running, snippets.Security.STARTTLS, recipient=recipient)
    return {one.title: one.text for one in snippets.over_http(where, api_key=running.dev_info["api_key"])}


def written(folder: pathlib.Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_sends_over_http(running: Running) -> None:
    text = over_http(running, recipient="curl-http@clients.test")["curl"]
    printed = test_clients.run("sh", "-c", text)
    assert QUEUED.search(printed), printed
    assert running.arrived("curl-http@clients.test")["Subject"] == "Hello"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_sends_over_smtp_and_looks_whose_certificate_it_is(running: Running) -> None:
    text = over_smtp(running, snippets.Security.STARTTLS, recipient="curl-smtp@clients.test")["curl"]
    trusting = {"CURL_CA_BUNDLE": str(running.authority)}
    test_clients.run("sh", "-c", text, environment=trusting)
    assert running.arrived("curl-smtp@clients.test")["Subject"] == "Hello"
    refused = subprocess.run(["sh", "-c", text], capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert refused.returncode == 60, refused.stderr


def test_python_sends_over_smtp(running: Running, tmp_path: pathlib.Path) -> None:
    text = over_smtp(running, snippets.Security.STARTTLS, recipient="python-smtp@clients.test")["Python"]
    program = written(tmp_path, "program.py", text)
    test_clients.run(sys.executable, program, environment={"SSL_CERT_FILE": str(running.authority)})
    arrived = running.arrived("python-smtp@clients.test")
    assert "with ESMTPSA id req_" in " ".join(arrived["Received"].split())


@pytest.mark.skipif(not test_clients.has_nodemailer(), reason="nodemailer is not installed")
def test_node_sends_over_smtp(running: Running, tmp_path: pathlib.Path) -> None:
    text = over_smtp(running, snippets.Security.STARTTLS, recipient="node-smtp@clients.test")["Node.js"]
    program = written(tmp_path, "program.js", text)
    printed = test_clients.run("node", program, environment={"NODE_EXTRA_CA_CERTS": str(running.authority)})
    assert QUEUED.search(printed), printed


def texts(security: snippets.Security = snippets.Security.STARTTLS, **changed: str) -> dict[str, str]:
    """All snippets, by listener and title."""
    listener = snippets.SmtpListener("mail.example.com", 587, security)
    where = dataclasses.replace(
        snippets.SnippetContext(
            base_url="https://mail.example.com", smtp=listener, sender="hello@example.com", recipient="you@example.net"
        ),
        **changed,  # type: ignore[arg-type]
    )
    http = {f"http {one.title}": one.text for one in snippets.over_http(where)}
    return http | {f"smtp {one.title}": one.text for one in snippets.over_smtp(where)}


def assignments(text: str) -> Mapping[str, Any]:
    """What a Python file of settings says."""
    body = ast.parse(text).body
    assert all(isinstance(line, ast.Assign) for line in body)
    return {line.targets[0].id: ast.literal_eval(line.value) for line in body}  # type: ignore[attr-defined]


EVERY_SECURITY = pytest.mark.parametrize("security", list(snippets.Security))


def test_there_is_one_for_each_way_to_send() -> None:
    assert list(texts()) == [
        *("http curl", "http Python", "http JavaScript", "http PHP", "http Go", "http Ruby", "http Java"),
        *("smtp curl", "smtp Python", "smtp Node.js", "smtp Django", "smtp Laravel"),
    ]


@EVERY_SECURITY
@pytest.mark.parametrize("recipient", ["you@example.net", AWKWARD])
def test_python_is_python(security: snippets.Security, recipient: str) -> None:
    parsed = ast.parse(texts(security, recipient=recipient)["smtp Python"])
    assert recipient in [node.value for node in ast.walk(parsed) if isinstance(node, ast.Constant)]


@EVERY_SECURITY
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_is_javascript(security: snippets.Security, tmp_path: pathlib.Path) -> None:
    program = written(tmp_path, "program.js", texts(security, recipient=AWKWARD)["smtp Node.js"])
    test_clients.run("node", "--check", program)


@EVERY_SECURITY
def test_a_shell_takes_every_value_as_one_word(security: snippets.Security) -> None:
    shown = texts(security, recipient=AWKWARD)
    words = shlex.split(shown["http curl"].replace("\\\n", " "))
    assert json.loads(words[words.index("-d") + 1])["to"] == AWKWARD
    words = shlex.split(shown["smtp curl"].replace("\\\n", " "))
    assert words[words.index("--mail-rcpt") + 1] == AWKWARD
    assert f"To: {AWKWARD}" in words


@pytest.mark.parametrize(
    "security, expected",
    [
        (snippets.Security.STARTTLS, {"EMAIL_USE_TLS": True}),
        (snippets.Security.TLS, {"EMAIL_USE_SSL": True}),
        (snippets.Security.NONE, {}),
    ],
)
def test_the_settings_for_django(security: snippets.Security, expected: dict[str, bool]) -> None:
    assert assignments(texts(security)["smtp Django"]) == {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": "mail.example.com",
        "EMAIL_PORT": 587,
        "EMAIL_HOST_USER": snippets.USERNAME,
        "EMAIL_HOST_PASSWORD": snippets.PASSWORD,
        "DEFAULT_FROM_EMAIL": "hello@example.com",
        **expected,
    }


def test_the_settings_for_laravel() -> None:
    lines = dict(line.split("=", 1) for line in texts(snippets.Security.TLS)["smtp Laravel"].splitlines())
    assert (lines["MAIL_SCHEME"], lines["MAIL_HOST"], lines["MAIL_PORT"]) == ("smtps", "mail.example.com", "587")
    assert "MAIL_SCHEME=smtp\n" in texts()["smtp Laravel"]
    awkward = texts(sender='a"$b@example.com')["smtp Laravel"]
    assert 'MAIL_FROM_ADDRESS="a\\"\\$b@example.com"\n' in awkward


@pytest.mark.parametrize(
    "security, curl, python",
    [
        (snippets.Security.STARTTLS, "curl smtp://mail.example.com:587 --ssl-reqd ", "smtp.starttls(context="),
        (snippets.Security.TLS, "curl smtps://mail.example.com:587 ", 'SMTP_SSL("mail.example.com", 587, context='),
        (snippets.Security.NONE, "curl smtp://mail.example.com:587 -u", 'SMTP("mail.example.com", 587) as smtp'),
    ],
)
def test_tls_begins_as_the_listener_requires(security: snippets.Security, curl: str, python: str) -> None:
    shown = texts(security)
    assert curl in shown["smtp curl"]
    assert python in shown["smtp Python"]


FILES = {"certificate": "/tls/chain.pem", "key": "/tls/key.pem"}


@pytest.mark.parametrize(
    "submission, tls, hostname, expected",
    [
        ({}, {}, "", None),
        ({"listen": "127.0.0.1:2525", "auth_without_tls": True}, {}, "mail.example.com", ("127.0.0.1", 2525, "none")),
        ({"listen": "localhost:2525", "auth_without_tls": True}, {}, "mail.example.com", ("localhost", 2525, "none")),
        ({"listen": "[::1]:0"}, FILES, "mail.example.com", ("::1", 0, "STARTTLS")),
        ({"listen": "0.0.0.0:587"}, FILES, "mail.example.com", ("mail.example.com", 587, "STARTTLS")),
        ({"listen": "0.0.0.0:587"}, FILES, "", ("post.example.org", 587, "STARTTLS")),
        (
            {"listen": "0.0.0.0:587", "tls_listen": "0.0.0.0:465"},
            FILES,
            "mail.example.com",
            ("mail.example.com", 587, "STARTTLS"),
        ),
        ({"tls_listen": "0.0.0.0:465"}, FILES, "mail.example.com", ("mail.example.com", 465, "implicit TLS")),
    ],
)
def test_the_smtp_listener_is_where_the_settings_say(
    submission: dict[str, object], tls: dict[str, object], hostname: str, expected: tuple[str, int, str] | None
) -> None:
    settings = config.load(
        environment={}, overrides={"submission": submission, "delivery": {"hostname": hostname}, "tls": tls}
    )
    listener = snippets.smtp_listener(settings, base_url="https://post.example.org/")
    assert (listener and (listener.host, listener.port, str(listener.security))) == expected


def test_an_ipv6_host_stands_in_brackets_where_it_is_part_of_an_address() -> None:
    where = snippets.SnippetContext(
        base_url="http://[::1]:8025",
        smtp=snippets.SmtpListener("::1", 2525, snippets.Security.NONE),
        sender="hello@example.com",
        recipient="you@example.net",
    )
    shown = {one.title: one.text for one in snippets.over_smtp(where)}
    assert "smtp://[::1]:2525" in shown["curl"]
    assert 'SMTP("::1", 2525)' in shown["Python"]


def test_nothing_is_shown_of_smtp_where_nobody_listens() -> None:
    where = snippets.SnippetContext(
        base_url="http://a.example", smtp=None, sender="a@a.example", recipient="b@b.example"
    )
    assert snippets.over_smtp(where) == ()
