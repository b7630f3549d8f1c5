"""A configuration file has the chosen settings with the comments of `defaults.toml`, and others as comments."""

import re
import tomllib

from postroad import config
from postroad.cli.installation import init

CHOSEN = {"http": {"base_url": "https://mail.example.com"}, "delivery": {"hostname": "mail.example.com"}}
SUGGESTED = {"submission": {"listen": "[::]:587", "tls_key": "/etc/postroad/tls/privkey.pem"}}


def test_every_setting_has_its_comment() -> None:
    assert init.settings_text(CHOSEN, suggested={}).partition("\n\n")[2] == (
        "[http]\n"
        "# Public URL of the service, without a trailing slash. Empty: http:// or https:// and the listen address.\n"
        'base_url = "https://mail.example.com"\n'
        "\n"
        "[delivery]\n"
        "# Host name sent in EHLO. Its forward and reverse DNS should match this host. Empty: the system host name.\n"
        'hostname = "mail.example.com"\n'
    )


def test_what_is_suggested_is_ignored_until_its_first_character_is_removed() -> None:
    text = init.settings_text(CHOSEN, suggested=SUGGESTED)
    assert tomllib.loads(text) == CHOSEN
    assert tomllib.loads(re.sub(r"^#(?! )", "", text, flags=re.MULTILINE)) == {**CHOSEN, **SUGGESTED}


def test_what_is_suggested_for_a_section_that_is_there_is_in_it() -> None:
    suggested = {"delivery": {"mx_port": 2525}}
    text = init.settings_text(CHOSEN, suggested=suggested)
    assert text.count("[delivery]") == 1
    assert text.endswith("\n#mx_port = 2525\n")


def test_all_settings_together_are_the_defaults() -> None:
    sections = {name: table for name, table in config.defaults().items() if table}
    assert tomllib.loads(init.settings_text(sections, suggested={})) == sections
