"""`postroad template`."""

from pathlib import Path

from tests.cli.cli_runner import Installation


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


def test_a_broken_template_is_refused_with_the_name_of_the_field(installation: Installation) -> None:
    for words, sentence in (
        (("Hello", "--subject", "x", "--text", "x"), "alias: "),
        (("hello", "--subject", "x"), "text: give at least one"),
        (("hello", "--subject", "a\nb", "--text", "x"), "subject: "),
        (("hello", "--subject", "x", "--text", "{{broken"), "text: "),
    ):
        assert installation.refusal("template", "put", *words).startswith(sentence)
    assert installation.json("template", "list")["templates"] == []


def test_two_sources_for_one_body_are_a_wrong_use(installation: Installation) -> None:
    result = installation.run("template", "put", "a", "--subject", "x", "--text", "x", "--text-file", "-", given="y")
    assert result.exit_code == 2
    assert "--text and --text-file" in result.stderr


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
