"""`postroad certificate`: what is used, how long it lasts, and why there is no newer one."""

import datetime as dt
import json
from pathlib import Path

import trustme

from postroad import context
from postroad.storage.operations import certificates
from tests.cli.cli_runner import Installation

NAMES = "mail.example.com"
KEY = certificates.Key("https://acme-v02.api.letsencrypt.org/directory", NAMES)


def with_settings(installation: Installation, text: str) -> None:
    installation.file.write_text(f"{installation.file.read_text()}\n{text}")


def test_without_tls_there_is_nothing_to_list(empty: Installation) -> None:
    assert empty.text("certificate", "list") == "No listener uses TLS.\n"
    assert empty.refusal("certificate", "renew").endswith("acme.names: empty; list the host names of the certificate")


def test_a_file_is_listed_with_its_names_and_the_days_left(empty: Installation, tmp_path: Path) -> None:
    expires = dt.datetime.now(dt.UTC) + dt.timedelta(days=40, hours=1)
    issued = trustme.CA().issue_cert(NAMES, not_after=expires)
    file = tmp_path / "chain.pem"
    issued.cert_chain_pems[0].write_to_path(str(file))
    with_settings(
        empty,
        f'[tls]\ncertificate = "{file}"\nkey = "{file}"\n[http]\ntls = false\n[inbound]\nlisten = "127.0.0.1:0"\n',
    )
    (shown,) = empty.json("certificate", "list")["certificates"]
    assert (shown["listener"], shown["source"], shown["names"]) == ("inbound", "file", [NAMES])
    assert empty.text("certificate", "list").splitlines()[1].split()[-3:] == ["40", "-", "-"]


def test_a_certificate_by_acme_is_listed_with_its_problem_and_the_next_order(empty: Installation) -> None:
    with_settings(empty, f'[http]\nredirect_listen = "127.0.0.1:0"\n[acme]\nnames = ["{NAMES}"]\n')
    result = empty.run("certificate", "list")
    assert (result.exit_code, "not obtained yet" in result.stdout) == (1, True)

    async def fail(ctx: context.Context) -> None:
        async with ctx.store.transaction() as tx:
            await certificates.claim(tx, KEY, due_by=0, now=0, until=0)
            await certificates.postpone(tx, KEY, due_at=1_800_000_000_000_000, error="port 80 is closed")

    empty.ask(fail)
    (shown,) = json.loads(empty.run("certificate", "list", "--json").stdout)["certificates"]
    assert (shown["problem"], shown["due_at"], shown["expires_at"]) == (
        "port 80 is closed",
        "2027-01-15T08:00:00.000Z",
        None,
    )


def test_an_order_in_progress_is_not_made_twice(empty: Installation) -> None:
    with_settings(empty, f'[http]\nredirect_listen = "127.0.0.1:0"\n[acme]\nnames = ["{NAMES}"]\n')

    async def claim(ctx: context.Context) -> None:
        async with ctx.store.transaction() as tx:
            await certificates.claim(tx, KEY, due_by=0, now=0, until=2**62)

    empty.ask(claim)
    assert empty.refusal("certificate", "renew").endswith(
        "Another process is ordering this certificate; see 'postroad certificate list'."
    )
