"""The folder of `postroad dev`: private, owned by one service at a time, and never half-written."""

import stat
from pathlib import Path

import msgspec
import pytest

from postroad import config
from postroad.cli.framework import data_folder
from postroad.cli.framework.data_folder import DataFolder, DevInfo, FolderError

HANDOVER = DevInfo(
    base_url="http://127.0.0.1:1",
    smtp=data_folder.Smtp(username="user", password="password"),
    api_key="key",
    login=data_folder.Login("jo@example.com", "password"),
    domain="example.com",
    template="welcome",
    sink=data_folder.Listener("127.0.0.1", 2),
    inbound=data_folder.Listener("127.0.0.1", 3),
)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    prepared = DataFolder(tmp_path / "deep" / "data")
    prepared.prepare()
    return prepared


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_and_everything_in_it_is_private(folder: DataFolder) -> None:
    with folder.locked(), folder.previous_info():
        folder.write_info(HANDOVER)
    assert mode(folder.path) == 0o700
    assert {path.name for path in folder.path.iterdir()} == {
        ".gitignore",
        "dev.json",
        "lock",
        "postroad.sqlite",
        "secret.key",
    }
    assert {mode(path) for path in folder.path.iterdir()} == {0o600}


def test_a_folder_of_ours_that_was_opened_up_is_closed_again(folder: DataFolder) -> None:
    folder.path.chmod(0o755)
    folder.prepare()
    assert mode(folder.path) == 0o700


def test_an_empty_folder_that_was_there_becomes_ours(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.mkdir(mode=0o755)
    DataFolder(path).prepare()
    assert mode(path) == 0o700


def test_a_folder_that_holds_other_things_keeps_its_rights_but_ours_are_private(tmp_path: Path) -> None:
    path = tmp_path / "project"
    path.mkdir()
    path.chmod(0o755)
    (path / "main.py").touch()
    folder = DataFolder(path)
    folder.prepare()
    assert mode(path) == 0o755
    assert (mode(folder.key), mode(folder.database)) == (0o600, 0o600)
    assert not (path / ".gitignore").exists()


def test_each_folder_gets_a_strong_key_of_its_own_and_keeps_it(folder: DataFolder, tmp_path: Path) -> None:
    key = config.installation_key(folder.settings(environment={}).security)
    folder.prepare()
    assert config.installation_key(folder.settings(environment={}).security) == key
    other = DataFolder(tmp_path / "other")
    other.prepare()
    assert config.installation_key(other.settings(environment={}).security) != key


def test_a_path_that_cannot_be_a_folder_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match=r"file/data cannot be used as a data folder: Not a directory"):
        DataFolder(tmp_path / "file" / "data").prepare()


def test_settings_are_those_of_development(folder: DataFolder) -> None:
    settings = folder.settings(environment={}, listen={"http": "127.0.0.1:0", "submission": "127.0.0.1:1"})
    assert settings.database.url == f"sqlite:///{folder.database}"
    assert settings.domains.require_verified is False
    assert settings.domains.check_hours == 0
    assert settings.logs.format == "console"
    assert settings.http.listen == "127.0.0.1:0"
    assert (settings.submission.listen, settings.submission.auth_without_tls) == ("127.0.0.1:1", True)
    assert settings.delivery.retry_seconds == (2, 3, 5, 5, 5, 5, 5, 5, 5)
    assert settings.testing.poll_milliseconds == 50
    assert settings.webhooks.allow_insecure is True
    assert settings.bounce_guard.enabled is False
    assert settings.webhooks.retry_seconds == (1, 2, 3, 5, 8, 13)
    assert len(settings.delivery.retry_seconds) == len(config.load(environment={}).delivery.retry_seconds)


def test_listeners_are_where_the_service_of_the_folder_has_them(folder: DataFolder) -> None:
    smtp = msgspec.structs.replace(HANDOVER.smtp, host="::1", port=19135)
    folder.write_info(msgspec.structs.replace(HANDOVER, base_url="http://127.0.0.1:18135", smtp=smtp))
    settings = folder.settings(environment={})
    assert (settings.http.listen, settings.submission.listen) == ("127.0.0.1:18135", "[::1]:19135")
    assert settings.inbound.listen == "127.0.0.1:3"
    assert config.local_url(settings) == "http://127.0.0.1:18135"
    elsewhere = folder.settings(environment={"POSTROAD_HTTP__LISTEN": "127.0.0.1:1"}, listen={"submission": "[::1]:2"})
    assert (elsewhere.http.listen, elsewhere.submission.listen) == ("127.0.0.1:1", "[::1]:2")


def test_the_environment_can_change_all_but_where_the_data_lives(folder: DataFolder) -> None:
    environment = {
        "POSTROAD_DATABASE__URL": "postgresql://elsewhere/name",
        "POSTROAD_SECURITY__INSTALLATION_KEY": "of something else",
        "POSTROAD_LOGS__FORMAT": "json",
        "POSTROAD_DOMAINS__REQUIRE_VERIFIED": "true",
        "POSTROAD_LIMITS__REQUEST_RATE": "7",
        "POSTROAD_DELIVERY__RETRY_SECONDS": "60",
    }
    settings = folder.settings(environment=environment)
    assert settings.database.url == f"sqlite:///{folder.database}"
    assert config.installation_key(settings.security) == folder.key.read_bytes().strip()
    assert (settings.logs.format, settings.domains.require_verified, settings.limits.request_rate) == ("json", True, 7)
    assert settings.delivery.retry_seconds == (60,)


def test_a_folder_serves_one_process_at_a_time(folder: DataFolder) -> None:
    with folder.locked(), pytest.raises(FolderError, match="is in use by another 'postroad dev'"), folder.locked():
        pass
    with folder.locked():
        pass


def test_what_was_handed_over_is_found_at_the_next_start(folder: DataFolder) -> None:
    with folder.previous_info() as before:
        assert before is None
        folder.write_info(HANDOVER)
    with folder.previous_info() as before:
        assert before == HANDOVER


def test_a_start_hides_the_last_handover_until_there_is_a_new_one(folder: DataFolder) -> None:
    folder.write_info(HANDOVER)
    with folder.previous_info():
        assert not folder.info_file.exists()
    assert folder.info_file.exists()  # a start that failed brings it back


def test_a_handover_that_is_deleted_while_the_service_runs_stays_deleted(folder: DataFolder) -> None:
    folder.write_info(HANDOVER)
    with folder.previous_info():
        folder.write_info(HANDOVER)
        folder.info_file.unlink()
    assert not folder.info_file.exists()


def test_a_start_that_was_killed_costs_no_credentials(folder: DataFolder) -> None:
    folder.write_info(HANDOVER)
    killed = folder.previous_info()
    killed.__enter__()
    assert not folder.info_file.exists()
    with folder.previous_info() as before:
        assert before == HANDOVER


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"base_url": "x"}', b"\xff"])
def test_a_damaged_handover_counts_as_none(folder: DataFolder, content: bytes) -> None:
    folder.info_file.write_bytes(content)
    with folder.previous_info() as before:
        assert before is None
