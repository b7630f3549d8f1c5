"""The examples of docs/smtp.md run as they are, against a listener with TLS; its tables and numbers match the code.

Only the placeholders for host and credential are filled in. Every client verifies the certificate of the listener, and
gets the test's authority from outside. One whose program or library is not installed is skipped; nodemailer is
looked for in NODE_PATH, PHPMailer's autoloader in PHPMAILER_AUTOLOAD.
"""

import os
import pathlib
import re
import shlex
import shutil
import smtplib
import ssl
import subprocess
import sys
import tempfile
import tomllib

import pytest

from benchmarks.peers import postfix, process
from postroad import config
from postroad.mail.accept import mime_validation, submit_mime
from postroad.model.mail import limits
from postroad.network.smtp import smtp_server
from postroad.protocol.mime import address_lists, message_parser, seven_bit
from postroad.submission import listeners
from tests.cli import cli_runner
from tests.docs import markdown
from tests.submission import test_clients
from tests.submission.test_clients import Running, running

__all__ = ["running"]

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "smtp.md").read_text()
EXAMPLES: dict[str, str] = dict(re.findall(r"<!-- example: (\w+) -->\n```\w+\n(.*?)\n```", PAGE, re.DOTALL))
# Whom all examples write to, but for Postfix's, which says nothing of a message.
RECIPIENT = "you@example.net"


def example(name: str, running: Running) -> str:
    """An example with what a reader would put in the place of the page's words."""
    smtp = running.smtp
    text = EXAMPLES[name]
    for written, value in {
        "127.0.0.1:2525": f"{smtp['host']}:{smtp['port']}",
        "[mail.example.com]:587": f"[{smtp['host']}]:{smtp['port']}",
        "smtp_…:…": f"{smtp['username']}:{smtp['password']}",
    }.items():
        text = text.replace(written, value)
    assert "…" not in text
    return text


def environment(running: Running) -> dict[str, str]:
    """What examples read, and how Python and Node trust the authority."""
    chosen = {f"SMTP_{name.upper()}": str(value) for name, value in running.smtp.items()}
    return {**chosen, "SSL_CERT_FILE": str(running.authority), "NODE_EXTRA_CA_CERTS": str(running.authority)}


def test_the_page_has_an_example_for_each_client() -> None:
    assert list(EXAMPLES) == ["curl", "python", "php", "node", "postfix"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_line_for_curl(running: Running) -> None:
    words = shlex.split(example("curl", running).replace("\\\n", " "))
    printed = test_clients.run(*words, "--ssl-reqd", "--cacert", str(running.authority))
    assert re.search(r"250 2\.0\.0 OK: queued as em_[0-9a-f]{28}", printed), printed
    assert running.arrived(RECIPIENT)["Subject"] == "Hello"


def test_the_program_in_python(running: Running, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(example("python", running))
    recipient = own_recipient(program, "python")
    test_clients.run(sys.executable, str(program), environment=environment(running))
    arrived = running.arrived(recipient)
    assert (arrived["Subject"], arrived["X-Service-Tag"]) == ("Your receipt", "receipt")
    assert "Idempotency-Key" not in arrived
    assert "with ESMTPSA id req_" in " ".join(arrived["Received"].split())


def test_the_program_in_python_looks_whose_certificate_it_is(running: Running, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(example("python", running))
    nobody = tmp_path / "nobody.pem"
    nobody.touch()
    trusting_nobody = {**environment(running), "SSL_CERT_FILE": str(nobody), "SSL_CERT_DIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, str(program)], env={**os.environ, **trusting_nobody}, capture_output=True, check=False
    )
    assert ended.returncode != 0
    assert b"CERTIFICATE_VERIFY_FAILED" in ended.stderr


def no_phpmailer() -> str | None:
    """Why the PHP of the page cannot run here; None when it can."""
    if shutil.which("php") is None:
        return "php is not installed"
    return None if os.environ.get("PHPMAILER_AUTOLOAD") else "PHPMailer is not installed"


@pytest.mark.skipif(no_phpmailer() is not None, reason=str(no_phpmailer()))
def test_the_program_in_php(running: Running, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.php"
    program.write_text(example("php", running))
    recipient = own_recipient(program, "php")
    trusting = f"openssl.cafile={running.authority}"
    test_clients.run("php", "-d", trusting, str(program), environment=environment(running))
    assert running.arrived(recipient)["Subject"] == "Your receipt"


def test_the_program_for_node(running: Running, tmp_path: pathlib.Path) -> None:
    if not test_clients.has_nodemailer():
        pytest.skip("nodemailer is not installed")
    program = tmp_path / "program.cjs"
    program.write_text(example("node", running))
    recipient = own_recipient(program, "node")
    printed = test_clients.run("node", str(program), environment=environment(running))
    assert printed.startswith("250 2.0.0 OK: queued as em_"), printed
    assert running.arrived(recipient)["Subject"] == "Your receipt"


def own_recipient(program: pathlib.Path, name: str) -> str:
    """Let a program write to somebody whom no other one writes to."""
    recipient = f"{name}@clients.test"
    program.write_text(program.read_text().replace(RECIPIENT, recipient))
    return recipient


@pytest.mark.skipif(test_clients.no_relay() is not None, reason=str(test_clients.no_relay()))
def test_the_settings_for_postfix(running: Running) -> None:
    # Postfix works as a user of its own, who may not enter pytest's folders.
    with tempfile.TemporaryDirectory(prefix="postroad-postfix-") as parent:
        pathlib.Path(parent).chmod(0o755)
        instance = relay(pathlib.Path(parent, "instance"), running)
        instance.start()
        try:
            with smtplib.SMTP("127.0.0.1", instance.port, timeout=cli_runner.TIMEOUT_SECONDS) as client:
                content = "From: hello@example.com\r\nTo: postfix@page.test\r\nSubject: By Postfix\r\n\r\nIt works.\r\n"
                client.sendmail("hello@example.com", ["postfix@page.test"], content)
            arrived = running.arrived("postfix@page.test")
            process.wait_until(lambda: instance.stored() == 0, what="the end of the relay")
        finally:
            instance.stop()
    assert arrived["Subject"] == "By Postfix"


def relay(folder: pathlib.Path, running: Running) -> postfix.Postfix:
    """A Postfix with the page's lines, and the page's password table made by postmap."""
    for name in ("configuration", "queue", "data"):
        (folder / name).mkdir(parents=True)
    shutil.chown(folder / "data", user="postfix")
    table = folder / "configuration" / "sasl_passwd"
    (line,) = re.findall(r"The password table has one line, `([^`]+)`", PAGE)
    smtp = running.smtp
    line = line.replace("mail.example.com]:587", f"{smtp['host']}]:{smtp['port']}")
    table.write_text(line.replace("smtp_…:…", f"{smtp['username']}:{smtp['password']}") + "\n")
    lines = example("postfix", running).replace("/etc/postfix/sasl_passwd", str(table))
    main = postfix.MAIN_CF.format(folder=folder, processes=20)
    (folder / "configuration" / "main.cf").write_text(f"{main}\n{lines}\n")
    port = process.free_port()
    master = postfix.MASTER_CF.format(port=port) + test_clients.TLS_MASTER_CF
    (folder / "configuration" / "master.cf").write_text(master)
    test_clients.run("postmap", "-c", str(folder / "configuration"), f"hash:{table}")
    return postfix.Postfix(folder, port=port)


def test_the_refusal_that_is_shown_is_the_one_that_is_sent(running: Running) -> None:
    shown = re.search(r"```text\n(550 .*)\n```", PAGE)
    assert shown
    smtp, trusting = running.smtp, ssl.create_default_context(cafile=str(running.authority))
    with smtplib.SMTP(smtp["host"], smtp["port"], timeout=cli_runner.TIMEOUT_SECONDS) as client:
        client.starttls(context=trusting)
        client.login(smtp["username"], smtp["password"])
        with pytest.raises(smtplib.SMTPDataError) as refused:
            client.sendmail("a@example.org", [RECIPIENT], "From: a@example.org\r\n\r\nHello\r\n")
    words = refused.value.smtp_error
    said = f"{refused.value.smtp_code} {words.decode() if isinstance(words, bytes) else words}"
    assert re.sub(r"req_[0-9a-f]{28}", "", said) == re.sub(r"req_[0-9a-f]{28}", "", shown[1])


def test_every_field_that_is_removed_is_called_so() -> None:
    rows = markdown.rows(PAGE, "part of the message")
    fields = {name.lower(): row for row in rows for name in markdown.CODE.findall(row[0])}
    removed = {name for name, row in fields.items() if "Removed." in " ".join(row)}
    assert removed == {*submit_mime.DROPPED, f"{mime_validation.METADATA_PREFIX}<key>"}
    assert mime_validation.TAG in fields


def test_every_field_that_may_stand_once_is_named() -> None:
    (sentence,) = re.findall(r"So are messages in which (.*?) occurs twice", PAGE)
    assert tuple(name.lower() for name in markdown.CODE.findall(sentence)) == mime_validation.ONCE


def test_the_numbers_are_those_of_the_code() -> None:
    defaults = smtp_server.ListenerLimits()
    for said in (
        f"up to {limits.UNIQUE_RECIPIENTS}, each address once",
        f"The {limits.UNIQUE_RECIPIENTS + 1}st recipient of a transaction.",
        f"At most {limits.SUBJECT_CHARACTERS} characters",
        f"may have {limits.ATTACHMENTS} attachments, with file names of up to {limits.FILENAME_CHARACTERS} characters",
        f"{limits.CUSTOM_HEADERS} custom fields, with names of up to {limits.HEADER_NAME_CHARACTERS} characters",
        f"at most {limits.TAGS}, each 1 to {limits.TAG_CHARACTERS} characters",
        f"1 to {limits.IDEMPOTENCY_KEY_CHARACTERS} characters; the same message",
        f"within {limits.IDEMPOTENCY_KEY_SECONDS // 3600} hours",
        f"{mime_validation.MAX_RECEIVED} `Received` fields are a loop",
        f"have up to {address_lists.MAX_ADDRESSES} addresses each",
        f"with more than {limits.UNIQUE_RECIPIENTS} recipients, the second transaction",
        f"A header may have {message_parser.HEADER_OCTETS // 1024} KiB",
        f"({message_parser.UTF8_HEADER_OCTETS // 1024} KiB when it is not ASCII)",
        f"and {message_parser.MAX_FIELDS:,} fields",
        f"a line {message_parser.LINE_OCTETS} bytes, the message {limits.MIME_BYTES // 1024**2} MiB",
        f"`X-Original-Message-ID`, up to {submit_mime.MAX_KEPT_OCTETS} bytes",
        f"more than {seven_bit.BOUNDS.parts} parts",
        "Too many failed authentication attempts` | Five failed logins.",
        "No complete command within five minutes",
    ):
        assert said in PAGE, said
    assert listeners.MAX_FAILED_LOGINS == 5
    assert defaults.command_seconds == 5 * 60


def test_the_settings_are_settings() -> None:
    block = re.search(r"```toml\n(.*?)\n```", PAGE, re.DOTALL)
    assert block
    written = tomllib.loads(block[1])
    loaded = config.load(environment={}, overrides=written)
    chosen = loaded.submission
    assert written == {
        section: {name: getattr(getattr(loaded, section), name) for name in written[section]}
        for section in ("submission", "tls")
    }
    assert (config.endpoint(chosen.listen, name="").port, config.endpoint(chosen.tls_listen, name="").port) == (
        587,
        465,
    )
