"""`postroad doctor`: a good installation, a broken one, and one that cannot even be read."""

import asyncio
import json
import resource
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click.testing
import pytest

from postroad import config
from postroad.network import hostname
from postroad.roles import composition
from postroad.services.operations.checks import host, table
from postroad.storage.operations import processes
from tests import dns_server, smtp_peers
from tests.cli import cli_runner
from tests.services.operations.checks import setups

GOOD = """
[database]
url = "{url}"
[security]
installation_key_file = "{folder}/secret.key"
[http]
listen = "127.0.0.1:{http}"
base_url = "https://mail.example.org"
tls = false
trusted_proxies = ["127.0.0.1"]
[submission]
listen = "127.0.0.1:{submission}"
[tls]
certificate = "{folder}/chain.pem"
key = "{folder}/key.pem"
[delivery]
hostname = "mail.example.org"
resolvers = ["{dns}"]
return_path_domain = "bounces.example.org"
mx_port = {smtp}
dane = true
[[sources]]
name = "out"
address = "127.0.0.1"
[doctor]
probe_host = "mail.example.org:{smtp}"
blocklists = {{ "bl.example.net" = "https://bl.example.net/removal" }}
"""
REVERSE = (
    "reverse_dns: warning. The reverse DNS of 127.0.0.1 is vps7.example.net, not mail.example.org. Ask its provider to "
    "set the PTR record to mail.example.org, or set delivery.hostname to vps7.example.net."
)


@pytest.fixture
async def running(
    tmp_path: Path, clean_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Path, dns_server.DnsServer]]:
    """A good installation whose service runs: its file, and its DNS."""
    # Whatever the machine of the tests is like.
    monkeypatch.setattr(host, "kernel_synchronizes", lambda: True)
    monkeypatch.setattr(resource, "prlimit", lambda *_: (1024, 1_000_000))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 0, 10**12))
    (tmp_path / "secret.key").write_text(cli_runner.SECRET_KEY)
    (tmp_path / "secret.key").chmod(0o600)
    _, context = setups.certificate(tmp_path, days=None)
    async with (
        dns_server.running(setups.zones(), secure={"."}) as dns,
        smtp_peers.serving(tls=context) as peer,
        setups.http_server() as http,
    ):
        file = tmp_path / "postroad.toml"
        places = {"http": http, "submission": peer.port, "smtp": peer.port, "dns": dns.address}
        file.write_text(GOOD.format(url=clean_sqlite_url, folder=tmp_path, **places))
        async with composition.open_context(config.load(file, environment={})) as ctx:
            now, own = ctx.clock(), hostname.short_name()
            async with ctx.store.transaction() as tx:
                row = processes.Process(f"{own}:1", own, 1, setups.ROLES, "0.1.0", now, now + 3_600_000_000)
                await processes.put(tx, row)
            yield file, dns


async def doctor(file: Path, *words: str) -> click.testing.Result:
    """Run the command while the servers of this test go on."""
    return await asyncio.to_thread(cli_runner.run, "doctor", "--config", str(file), *words)


async def told(file: Path) -> tuple[int, dict[str, Any]]:
    result = await doctor(file, "--json")
    return result.exit_code, json.loads(result.stdout)


async def test_a_good_installation_is_fine_while_its_service_uses_the_database(
    running: tuple[Path, dns_server.DnsServer],
) -> None:
    file, _ = running
    code, report = await told(file)
    others = {one["name"]: one["state"] for one in report["findings"] if one["state"] != "ok"}
    assert others == {"single_sign_on": "skipped"}
    assert (code, report["state"]) == (0, "ok")
    assert [one["name"] for one in report["findings"]] == list(table.CHECKS)
    assert report["findings"][1] == {
        "name": "hostname",
        "state": "ok",
        "found": "this host says EHLO mail.example.org, which resolves",
        "advice": "",
        "documentation": "https://mail.example.org/docs/doctor.md#hostname",
    }


async def test_problems_are_named_with_what_to_do_and_where_to_read_more(
    running: tuple[Path, dns_server.DnsServer],
) -> None:
    file, dns = running
    dns.zones[setups.REVERSE] = {"PTR": ["vps7.example.net."]}
    result = await doctor(file)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert REVERSE in lines
    assert [line for line in lines if "doctor.md" in line] == [
        "Each check is explained at https://mail.example.org/docs/doctor.md, and in docs/doctor.md of the checkout."
    ]
    assert "settings: ok. No setting is unsafe." in lines
    assert lines[-1] == "22 checks: 20 ok, 1 skipped, 1 warning, 0 errors."
    dns.zones[setups.REVERSE] = {}
    assert (await doctor(file)).exit_code == 2


def test_settings_that_are_refused_are_an_error_and_not_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text('[doctor]\nprobe_host = "mail"\n')
    result = cli_runner.run("doctor", "--config", str(file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: doctor.probe_host: 'mail' is not an address; write host:port")
