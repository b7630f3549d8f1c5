"""The examples send through a service with TLS, as their pages say: their files are taken as they are.

Only host, port and credential are filled in. What is not run (Laravel, Ghost and Keycloak as a whole, Next.js) is
replaced by the library that it sends with, called in the same way.
"""

import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from benchmarks.peers import process
from clients.conformance import languages
from tests.cli import cli_runner
from tests.cli.test_dev import handover
from tests.submission import submission_server, test_clients
from tests.submission.test_clients import Running

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PROGRAMS = Path(__file__).parent / "programs"
PACKAGES = ROOT / "tests" / "compat" / "node_modules"
ESBUILD = ROOT / "clients" / "javascript" / "node_modules" / ".bin" / "esbuild"
MAILER = Path("/usr/share/php/Symfony/Component/Mailer/autoload.php")
JARS = [Path("/usr/share/java", name) for name in ("jakarta-mail.jar", "jakarta-activation.jar")]
SECRET = "whsec_of-the-example"
ORDER = {"number": "1042", "name": "Ada", "items": [{"title": "Tea", "price": "4.50 EUR"}], "total": "4.50 EUR"}


@pytest.fixture(scope="module")
def tls_port() -> int:
    return process.free_port()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, tls_port: int) -> Iterator[Running]:
    """As `test_clients.running`, with the port that begins with TLS, too."""
    folder = tmp_path_factory.mktemp("examples")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    files = submission_server.issue(authority, folder)
    environment = {
        "POSTROAD_HTTP__TLS": "false",
        "POSTROAD_TLS__CERTIFICATE": str(files.chain),
        "POSTROAD_TLS__KEY": str(files.key),
        "POSTROAD_SUBMISSION__AUTH_WITHOUT_TLS": "false",
        "POSTROAD_SUBMISSION__TLS_LISTEN": f"127.0.0.1:{tls_port}",
    }
    words = ("dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0")
    with cli_runner.Service(*words, folder=folder, environment=environment) as service:
        yield Running(service, handover(service, folder), folder / "authority.pem")
        assert service.stop()[0] == 0


def found(running: Running, recipient: str) -> dict[str, Any]:
    """The message to a recipient, as the API shows it to its sender."""
    with httpx.Client(base_url=running.dev_info["base_url"]) as client:
        token = client.post("/v1/auth/login", json=running.dev_info["login"]).json()["token"]
        client.headers["Authorization"] = f"Bearer {token}"
        (only,) = client.get("/v1/messages", params={"to": recipient}).json()["messages"]
        shown: dict[str, Any] = client.get(f"/v1/messages/{only['id']}").json()
        return shown


def without(*needed: Path) -> str:
    """Why an example cannot run here; empty when it can."""
    missing = [str(path) for path in needed if not path.exists()]
    return f"{', '.join(missing)}: not installed; make test installs it" if missing else ""


# Django, as a process that a browser asks.


@pytest.fixture(scope="module")
def shop(running: Running) -> Iterator[httpx.Client]:
    port = process.free_port()
    smtp = running.smtp
    environment = {
        **languages.environment(),
        "EMAIL_HOST": str(smtp["host"]),
        "EMAIL_PORT": str(smtp["port"]),
        "EMAIL_HOST_USER": smtp["username"],
        "EMAIL_HOST_PASSWORD": smtp["password"],
        "POSTROAD_WEBHOOK_SECRET": SECRET,
        "SECRET_KEY": "for-the-test",
        "SSL_CERT_FILE": str(running.authority),
    }
    words = [sys.executable, "manage.py", "runserver", "--noreload", "--nothreading", f"127.0.0.1:{port}"]
    with (
        subprocess.Popen(words, cwd=EXAMPLES / "django", env=environment) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=cli_runner.TIMEOUT_SECONDS) as client,
    ):
        try:
            process.wait_until(lambda: answers(client), what="Django")
            yield client
        finally:
            server.terminate()


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/").is_success
    except httpx.TransportError:
        return False


def test_the_shop_in_django_sends_its_receipt_once(running: Running, shop: httpx.Client) -> None:
    (token,) = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', shop.get("/").text)
    form = {"number": "1042", "to": "django@examples.test", "csrfmiddlewaretoken": token}
    assert [shop.post("/receipt", data=form).status_code for _ in range(2)] == [202, 202]
    arrived = running.arrived("django@examples.test")
    assert (arrived["Subject"], arrived["From"]) == ("Your receipt for order 1042", "Shop <hello@example.com>")
    assert [part.get_content_type() for part in arrived.iter_parts()] == ["text/plain", "text/html"]
    assert found(running, "django@examples.test")["metadata"] == {"order": "1042"}
    elsewhere = shop.post("/receipt", data=form | {"to": "somebody-else@examples.test"})
    assert (elsewhere.status_code, elsewhere.text) == (502, "The receipt could not be sent.")
    assert shop.post("/receipt", data=form | {"number": "1044"}).status_code == 202


@pytest.mark.parametrize("secret, status", [(SECRET, 204), ("whsec_of-somebody-else", 400)])
def test_the_shop_in_django_believes_signed_events_only(shop: httpx.Client, secret: str, status: int) -> None:
    body = json.dumps(
        {
            "id": "evt_06604ca5a09e5ac3bf30764dc163",
            "type": "email.delivered",
            "created_at": "2026-01-31T12:00:03.811Z",
            "data": {
                "email_id": "em_06604ca58ccca61dc35061804060",
                "recipient_id": "rcp_06604ca58ccca63c75c8211311be",
                "to": "ada@example.net",
                "from": "hello@example.com",
                "subject": "Hello",
                "smtp_code": 250,
                "smtp_response": "2.0.0 OK",
            },
        }
    )
    signed = str(int(time.time()))
    digest = hmac.new(secret.encode(), f"{signed}.{body}".encode(), hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "Service-Signature": f"t={signed},v1={digest}"}
    assert shop.post("/hooks/postroad", content=body, headers=headers).status_code == status


# Next.js: the route is a function of a web request, which Node.js has without Next.js.


@pytest.mark.skipif(
    bool(without(ESBUILD, PACKAGES / "@react-email" / "components")) or shutil.which("node") is None,
    reason="Node.js, esbuild or React Email is not installed",
)
def test_the_route_of_next_renders_and_sends_its_mail_once(running: Running, tmp_path: Path) -> None:
    bundle = tmp_path / "route.cjs"
    modules = {"NODE_PATH": str(PACKAGES), "NODE_ENV": "production"}
    test_clients.run(
        *(str(ESBUILD), str(EXAMPLES / "nextjs-react-email" / "app" / "api" / "receipt" / "route.tsx")),
        *("--bundle", "--platform=node", "--format=cjs", "--jsx=automatic", "--log-level=error"),
        *(f"--alias:postroad={ROOT / 'clients' / 'javascript' / 'index.js'}", f"--outfile={bundle}"),
        environment=modules,
    )
    environment = {
        **modules,
        "POSTROAD_URL": running.dev_info["base_url"],
        "POSTROAD_API_KEY": running.dev_info["api_key"],
        "MAIL_FROM": lines(EXAMPLES / "nextjs-react-email" / "env.example")["MAIL_FROM"].strip('"'),
    }
    asked = json.dumps({"to": "next@examples.test", "order": {**ORDER, "number": "1043"}})
    printed = test_clients.run("node", str(PROGRAMS / "next_route.cjs"), str(bundle), asked, environment=environment)
    (first, second) = [json.loads(line) for line in printed.splitlines()]
    assert first["status"] == 202
    assert first == second
    arrived = running.arrived("next@examples.test")
    text, html = (part.get_content() for part in arrived.iter_parts())
    assert (arrived["Subject"], arrived["From"]) == ("Your receipt for order 1043", "Shop <hello@example.com>")
    assert "THANK YOU, ADA" in text
    assert "Tea: 4.50 EUR" in text
    assert re.search(r"<h1[^>]*>Thank you, (?:<!-- -->)?Ada</h1>", html)


def lines(path: Path) -> dict[str, str]:
    """The variables of a file such as `.env`."""
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if line and not line.startswith("#"))


# Laravel hands its settings to Symfony Mailer.


@pytest.mark.skipif(bool(without(MAILER)), reason=without(MAILER))
def test_the_settings_for_laravel_send_with_symfony_mailer(running: Running, tls_port: int) -> None:
    folder = EXAMPLES / "laravel"
    settings = lines(folder / "env.example")
    assert (settings["MAIL_MAILER"], settings["MAIL_PORT"]) == ("smtp", "465")
    smtp = running.smtp
    settings |= {"MAIL_HOST": smtp["host"], "MAIL_PORT": str(tls_port)}
    settings |= {"MAIL_USERNAME": smtp["username"], "MAIL_PASSWORD": smtp["password"]}
    trusting = f"openssl.cafile={running.authority}"
    printed = test_clients.run(
        *("php", "-d", trusting, "-d", "error_reporting=E_ALL&~E_DEPRECATED", str(PROGRAMS / "laravel_mailer.php")),
        *(str(MAILER), "laravel@examples.test"),
        environment=settings,
    )
    assert "queued as em_" in printed, printed
    arrived = running.arrived("laravel@examples.test")
    assert (arrived["Subject"], arrived["From"]) == ("Your receipt for order 1042", "Shop <hello@example.com>")
    assert "Idempotency-Key" not in arrived


@pytest.mark.skipif(shutil.which("php") is None, reason="PHP is not installed")
def test_the_mailable_of_laravel_is_php() -> None:
    test_clients.run("php", "-l", str(EXAMPLES / "laravel" / "app" / "Mail" / "Receipt.php"))


# Ghost hands `options` to Nodemailer.


@pytest.mark.skipif(
    bool(without(PACKAGES / "nodemailer")) or shutil.which("node") is None, reason="Nodemailer is not installed"
)
def test_the_settings_for_ghost_send_with_nodemailer(running: Running, tmp_path: Path) -> None:
    settings = json.loads((EXAMPLES / "ghost" / "mail.json").read_text())
    options, smtp = settings["mail"]["options"], running.smtp
    options |= {"host": smtp["host"], "port": smtp["port"]}
    options["auth"] = {"user": smtp["username"], "pass": smtp["password"]}
    (tmp_path / "config.production.json").write_text(json.dumps(settings))
    environment = {"NODE_PATH": str(PACKAGES), "NODE_EXTRA_CA_CERTS": str(running.authority)}
    printed = test_clients.run(
        *("node", str(PROGRAMS / "ghost_mailer.cjs"), str(tmp_path / "config.production.json"), "ghost@examples.test"),
        environment=environment,
    )
    assert "250 2.0.0 OK: queued as em_" in printed, printed
    assert running.arrived("ghost@examples.test")["From"] == "Shop Blog <hello@example.com>"


# Keycloak makes properties of Jakarta Mail of its settings.


@pytest.mark.skipif(
    bool(without(*JARS)) or shutil.which("java") is None, reason=without(*JARS) or "Java is not installed"
)
def test_the_settings_for_keycloak_send_with_jakarta_mail(running: Running, tls_port: int, tmp_path: Path) -> None:
    settings: dict[str, str] = json.loads((EXAMPLES / "keycloak" / "realm-smtp.json").read_text())["smtpServer"]
    assert settings["port"] == "465"
    smtp = running.smtp
    chosen = {"host": smtp["host"], "port": str(tls_port), "user": smtp["username"], "password": smtp["password"]}
    store = tmp_path / "authority.p12"
    test_clients.run(
        *("keytool", "-importcert", "-noprompt", "-alias", "authority", "-file", str(running.authority)),
        *("-keystore", str(store), "-storetype", "PKCS12", "-storepass", "changeit"),
    )
    pairs = [f"{name}={value}" for name, value in (settings | chosen).items()]
    test_clients.run(
        *("java", f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=changeit"),
        *("-cp", os.pathsep.join(map(str, JARS)), str(PROGRAMS / "KeycloakSender.java"), "keycloak@examples.test"),
        *pairs,
        environment=languages.environment(),
    )
    arrived = running.arrived("keycloak@examples.test")
    assert arrived["From"] == "Shop <login@example.com>"
    assert arrived["Reply-To"] == "Shop support <support@example.com>"


# The pages.


def test_every_example_has_a_page_that_says_what_was_tested_and_is_listed() -> None:
    pages = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))
    assert pages == ["django", "ghost", "keycloak", "laravel", "nextjs-react-email", "webhooks"]
    assert sorted(re.findall(r"\]\(([\w-]+)/README\.md\)", (EXAMPLES / "README.md").read_text())) == pages
    for name in pages:
        assert "**Tested:**" in (EXAMPLES / name / "README.md").read_text(), name


def test_the_lock_of_the_example_has_hashes_and_names_no_registry() -> None:
    folder = EXAMPLES / "nextjs-react-email"
    lock, package = (json.loads((folder / name).read_text()) for name in ("package-lock.json", "package.json"))
    for kind in ("dependencies", "devDependencies"):
        assert lock["packages"][""][kind] == package[kind]
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert {name for name, entry in packages.items() if "integrity" not in entry} == {"node_modules/postroad"}
    assert {entry["resolved"] for entry in packages.values() if "resolved" in entry} == {
        "file:../../clients/javascript"
    }
