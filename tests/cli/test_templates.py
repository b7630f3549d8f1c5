"""`postroad template`: single templates of an installation; a folder and a real server."""

import json
from pathlib import Path

import pytest

from tests.cli import cli_runner, scripted_server, server_runner
from tests.cli.cli_runner import Installation
from tests.cli.server_runner import Server, home, remote, server

__all__ = ["home", "remote", "server"]


def write(folder: Path, alias: str, **files: str) -> None:
    (folder / alias).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / alias / name.replace("_", ".")).write_bytes(text.encode())


def test_a_folder_is_pulled_changed_shown_and_pushed(remote: Server, tmp_path: Path) -> None:
    del remote
    write(tmp_path / "first", "welcome", subject_txt="Welcome", body_txt="Hello {{name}}\n")
    server_runner.text("template", "push", str(tmp_path / "first"), "--yes", "--delete")
    folder = tmp_path / "templates"
    assert server_runner.text("template", "pull", str(folder)) == "1 added, 0 changed, 0 removed.\n"
    assert (folder / "welcome" / "body.txt").read_text() == "Hello {{name}}\n"
    assert server_runner.text("template", "diff", str(folder)) == "The templates are the same.\n"
    write(folder, "welcome", subject_txt="New {{name}}\n")
    write(folder, "receipt", subject_txt="Receipt", body_html="<p>Grüße\r\n</p>")
    (folder / "README.md").write_text("Not a template.")
    shown = cli_runner.run("template", "diff", str(folder))
    assert (shown.exit_code, "+++ b/welcome/subject.txt" in shown.stdout) == (1, True)
    refused = cli_runner.run("template", "push", str(folder), given="n\n")
    assert (refused.exit_code, "+New {{name}}" in refused.stderr) == (1, True)
    assert "-New {{name}}" not in cli_runner.run("template", "diff", str(folder)).stdout
    pushed = cli_runner.run("template", "push", str(folder), "--yes", "--json")
    assert json.loads(pushed.stdout) == {"added": ["receipt"], "changed": ["welcome"], "removed": []}
    assert "+New {{name}}" in pushed.stderr
    assert server_runner.text("template", "push", str(folder)) == "The templates are the same.\n"
    again = tmp_path / "again"
    server_runner.text("template", "pull", str(again))
    assert (again / "receipt" / "body.html").read_bytes() == "<p>Grüße\r\n</p>".encode()
    assert [one.name for one in (again / "receipt").iterdir() if one.name == "body.txt"] == []


def test_a_layout_goes_before_what_uses_it_and_is_kept(remote: Server, tmp_path: Path) -> None:
    del remote
    folder = tmp_path / "laid-out"
    write(folder, "a-letter", subject_txt="Hi", body_txt="Hello", layout_txt="z-base\n")
    write(folder, "z-base", subject_txt="-", body_txt="{{> content}} {{> z-foot}}")
    write(folder, "z-foot", subject_txt="-", body_txt="Bye")
    server_runner.text("template", "push", str(folder), "--yes", "--delete")
    server_runner.text("template", "pull", str(tmp_path / "again"))
    assert (tmp_path / "again" / "a-letter" / "layout.txt").read_text() == "z-base\n"
    assert server_runner.text("template", "diff", str(folder)) == "The templates are the same.\n"
    (tmp_path / "empty").mkdir()
    removed = server_runner.data("template", "push", str(tmp_path / "empty"), "--yes", "--delete")["removed"]
    assert removed == ["a-letter", "z-base", "z-foot"]


def test_a_large_folder_is_pushed_at_the_rate_that_the_server_allows(remote: Server, tmp_path: Path) -> None:
    del remote
    names = [f"letter-{number:02}" for number in range(60)]
    for name in names:
        write(tmp_path / "large", name, subject_txt=name, body_txt="Hello")
    pushed = server_runner.data("template", "push", str(tmp_path / "large"), "--yes", "--delete")
    assert pushed["added"] == names
    assert server_runner.text("template", "diff", str(tmp_path / "large")) == "The templates are the same.\n"


def test_nothing_is_deleted_or_overwritten_without_being_told_to(remote: Server, tmp_path: Path) -> None:
    del remote
    write(tmp_path / "a", "one", subject_txt="One", body_txt="1")
    write(tmp_path / "a", "two", subject_txt="Two", body_txt="2")
    server_runner.text("template", "push", str(tmp_path / "a"), "--yes")
    write(tmp_path / "b", "one", subject_txt="Mine", body_txt="1")
    write(tmp_path / "b", "local", subject_txt="Local", body_txt="1")
    refused = cli_runner.run("template", "pull", str(tmp_path / "b"))
    assert server_runner.refusal(refused, exit_code=1).startswith("one: different in ")
    assert "-Mine" in refused.stderr
    assert sorted(one.name for one in (tmp_path / "b").iterdir()) == ["local", "one"]
    server_runner.text("template", "pull", str(tmp_path / "b"), "--force")
    assert (tmp_path / "b" / "one" / "subject.txt").read_text() == "One\n"
    assert (tmp_path / "b" / "local" / "subject.txt").read_text() == "Local"
    write(tmp_path / "c", "one", subject_txt="One", body_txt="1")
    assert server_runner.data("template", "push", str(tmp_path / "c"), "--yes")["removed"] == []
    assert "two" in server_runner.data("template", "push", str(tmp_path / "c"), "--yes", "--delete")["removed"]
    assert server_runner.text("template", "diff", str(tmp_path / "c")) == "The templates are the same.\n"


@pytest.mark.parametrize(
    "files, said",
    [
        ({}, "needs subject.txt, and body.txt or body.html"),
        ({"subject_txt": "x"}, "needs subject.txt"),
        ({"body_txt": "x"}, "needs subject.txt"),
    ],
)
def test_a_template_that_is_not_whole_is_refused(
    remote: Server, tmp_path: Path, files: dict[str, str], said: str
) -> None:
    del remote
    write(tmp_path / "t", "broken", **files)
    result = cli_runner.run("template", "push", str(tmp_path / "t"), "--yes", "--delete")
    assert said in server_runner.refusal(result, exit_code=1)


def test_bad_folders_and_files_are_refused_and_the_server_names_what_it_refuses(remote: Server, tmp_path: Path) -> None:
    del remote
    nowhere = cli_runner.run("template", "push", str(tmp_path / "nowhere"))
    assert server_runner.refusal(nowhere, exit_code=2).endswith("is not a folder")
    write(tmp_path / "a", "not an alias", subject_txt="x", body_txt="x")
    bad = cli_runner.run("template", "diff", str(tmp_path / "a"))
    assert "cannot be the alias" in server_runner.refusal(bad, exit_code=1)
    write(tmp_path / "b", "bytes", subject_txt="x")
    (tmp_path / "b" / "bytes" / "body.txt").write_bytes(b"\xff")
    binary = cli_runner.run("template", "diff", str(tmp_path / "b"))
    assert "it is not UTF-8 text" in server_runner.refusal(binary, exit_code=1)
    write(tmp_path / "c", "placeholder", subject_txt="x", body_txt="{{")
    refused = cli_runner.run("template", "push", str(tmp_path / "c"), "--yes")
    assert server_runner.refusal(refused, exit_code=1).startswith("placeholder: ")


def test_a_hostile_alias_is_never_the_name_of_a_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del home
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
    hostile = {"templates": [{"alias": "../outside"}], "template": {"subject": "x", "text": "x"}}
    with scripted_server.answering(json.dumps(hostile).encode()) as server:
        result = cli_runner.run("template", "pull", str(tmp_path / "in" / "side"), "--url", server.url)
    assert "cannot be the alias of a template" in server_runner.refusal(result, exit_code=1)
    assert not (tmp_path / "in").exists()


@pytest.mark.parametrize(
    "words", [("template", "pull", "new"), ("suppression", "list"), ("domain", "check", "x.example")]
)
@pytest.mark.parametrize("cursor", ["again", 7])
def test_a_list_that_does_not_end_is_an_error(
    home: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], cursor: object
) -> None:
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
    monkeypatch.chdir(home)
    with scripted_server.answering(json.dumps({"next_cursor": cursor}).encode()) as server:
        result = cli_runner.run(*words, "--url", server.url)
    assert server_runner.refusal(result, exit_code=1).endswith("does not end")
    assert len(server.asked) <= 2
    assert not (home / "new").exists()


@pytest.mark.parametrize("arguments", [("push", "--yes"), ("pull", "--force"), ("diff",)])
@pytest.mark.parametrize("name", ["body.html", "folder"])
def test_a_link_neither_sends_nor_overwrites_files_of_other_places(
    remote: Server, tmp_path: Path, name: str, arguments: tuple[str, ...]
) -> None:
    del remote
    write(tmp_path / "secret", "key", subject_txt="Secret", body_txt="Secret")
    folder = tmp_path / "templates"
    write(folder, "welcome", subject_txt="Welcome", body_txt="Hello")
    if name == "folder":
        (folder / "linked").symlink_to(tmp_path / "secret" / "key")
    else:
        # There is nothing yet: writing would make it.
        (folder / "welcome" / name).symlink_to(tmp_path / "secret" / "new")
    command, *options = arguments
    refused = cli_runner.run("template", command, str(folder), *options)
    assert refused.exit_code == 1
    assert "symbolic link" in refused.stderr
    assert not (tmp_path / "secret" / "new").exists()


def test_a_template_is_stored_and_replaced_under_its_alias(installation: Installation) -> None:
    first = installation.json("template", "put", "hello", "--subject", "Hi {{name}}", "--text", "Dear {{name}}")
    second = installation.json("template", "put", "hello", "--subject", "Hello", "--html", "<p>{{name}}</p>")
    assert second["template"]["id"] == first["template"]["id"]
    assert (second["template"]["text"], second["template"]["html"]) == (None, "<p>{{name}}</p>")
    (listed,) = installation.json("template", "list")["templates"]
    assert (listed["subject"], listed["has_text"], listed["has_html"]) == ("Hello", False, True)


def test_bodies_can_come_from_files_and_from_standard_input(installation: Installation, tmp_path: Path) -> None:
    html = tmp_path / "hello.html"
    html.write_text("<p>grüß {{name}}</p>\n", encoding="utf-8")
    words = ("template", "put", "hello", "--subject", "Hi", "--html-file", str(html), "--text-file", "-")
    template = installation.json(*words, given="grüß {{name}}\n")["template"]
    assert (template["text"], template["html"]) == ("grüß {{name}}\n", "<p>grüß {{name}}</p>\n")


def test_two_sources_for_one_body_are_a_wrong_use(installation: Installation) -> None:
    result = installation.run("template", "put", "a", "--subject", "x", "--text", "x", "--text-file", "-", given="y")
    assert result.exit_code == 2
    assert "--text and --text-file" in result.stderr
    assert installation.refusal("template", "put", "Not one", "--subject", "x", "--text", "x").startswith("alias: ")


def test_a_file_that_is_not_there_is_a_wrong_use_and_one_that_is_no_text_is_refused(
    installation: Installation, tmp_path: Path
) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\xff")
    words = ("template", "put", "a", "--subject", "x", "--text-file")
    assert installation.run(*words, str(tmp_path / "absent")).exit_code == 2
    assert installation.refusal(*words, str(binary)) == f"{binary} is not UTF-8 text"


def test_templates_are_listed_by_alias_in_pages(installation: Installation) -> None:
    for alias in ("c", "a", "b"):
        installation.text("template", "put", alias, "--subject", alias.upper(), "--text", "x")
    assert [row.split()[0] for row in installation.text("template", "list").splitlines()] == ["ALIAS", "a", "b", "c"]
    page = installation.json("template", "list", "--after", "a", "--limit", "1")
    assert ([template["alias"] for template in page["templates"]], page["next_after"]) == (["b"], "b")
