"""What docs/dashboard.md says in tables and numbers is what the dashboard is, and its pictures are there."""

import re
import shlex
from pathlib import Path

from postroad import config
from postroad.dashboard import application
from postroad.dashboard.framework import live
from postroad.dashboard.mail import find, suppressions
from postroad.model.people import callers
from postroad.model.search import search_query
from postroad.services import audit_log, usage_limits
from postroad.services.messages import dev_inbox, previews
from postroad.services.messages import lookup as messages
from postroad.services.operations import cleanup
from postroad.services.people import password_links, sessions
from postroad.web import routing
from tests.browser import pages, screenshots
from tests.cli.cli_runner import Installation
from tests.dashboard import browser_client
from tests.docs import markdown

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "screenshots"
PAGE = (ROOT / "docs" / "dashboard.md").read_text()
PICTURE = re.compile(r"""(?:\]\(|src="|srcset=")([^)"\s]+\.png)""")
SETTINGS = config.load(environment={}, overrides={})
# Forms lead to their pages; these are asked for by pages themselves, and are no place to be.
PARTS = (
    "/assets/",
    "/domains/{id}/",
    "/messages/{id}/",
    "/received/{id}/",
    "/domains/{id}/zone",
    "/inbox/{id}/",
    "/template/new/{starter}/",
    "/templates/{alias}/picture",
    "/templates/{alias}/preview",
    "/approvals/{id}/",
    "/suppressions/export",
    "/messages.csv",
    "/audit-log/export",
    "/credits/ledger.csv",
)
OUTSIDE = {
    "/login",
    "/login/second-factor",
    "/login/sso",
    "/notices/{token}",
    "/password/{token}",
    "/sso/{connection}/callback",
    "/unsubscribe/{token}",
    "/live",
}


def limit_of(what: str) -> str:
    (row,) = [row for row in markdown.rows(PAGE, "What") if row[0] == what]
    return row[1]


def pages_served() -> set[str]:
    """The address of every page that logged-in users can open, in development."""
    mail = dev_inbox.Inbox(clock=lambda: 0, entropy=bytes)
    site = browser_client.build_site(SETTINGS, inbox=mail)
    return {
        route.path
        for route in application.routes(site)
        if route.method == "GET"
        and route.permission is not callers.Permission.OPERATE
        and route.path not in OUTSIDE
        and not route.path.startswith(PARTS)
    }


def pictures_in(page: Path) -> set[Path]:
    return {(page.parent / name).resolve() for name in PICTURE.findall(page.read_text())}


def test_every_page_is_in_the_table_and_no_other() -> None:
    named = [address for row in markdown.rows(PAGE, "Page") for address in markdown.CODE.findall(row[0])]
    assert len(named) == len(set(named))
    assert set(named) == pages_served()


def test_the_search_is_documented_as_in_the_help_beside_the_box() -> None:
    shown = [tuple(cell.strip("`") for cell in row) for row in markdown.rows(PAGE, "Term")]
    assert shown == list(search_query.HELP)


def test_the_keys_are_those_that_the_dialog_shows() -> None:
    dialog = (ROOT / "src/postroad/dashboard/pages/parts/dialogs.html").read_text()
    shown = {
        key for keys in re.findall(r"<tr><td>(<kbd.*?)</td>", dialog) for key in re.findall(r">([^<>]+)</kbd>", keys)
    }
    (line,) = re.findall(r"## Keyboard\n\n(.*)", PAGE)
    assert set(markdown.CODE.findall(line)) <= shown


def test_what_is_found_has_the_limits_of_the_code() -> None:
    assert (find.MAX_RESULTS, "Up to five results of each kind" in PAGE) == (5, True)
    assert f"Only the {find.EXAMINED:,} newest messages, the {find.EXAMINED:,} oldest domains" in PAGE


def test_every_action_of_the_audit_log_is_listed_once() -> None:
    listed = [action for row in markdown.rows(PAGE, "About") for action in markdown.CODE.findall(row[1])]
    assert sorted(listed) == sorted(audit_log.ACTIONS)


def test_the_commands_that_make_the_first_owner_print_a_link(tmp_path: Path) -> None:
    shown = PAGE.split("```sh\n")[1].split("\n```")[0]
    installation = Installation.at(tmp_path, url=f"sqlite:///{tmp_path / 'postroad.db'}")
    installation.text("migrate")
    *_, printed = [installation.text(*shlex.split(line)[1:]) for line in shown.splitlines()]
    assert re.search(r"/password/[\w-]{20,}\n", printed)


def test_the_times_are_those_of_the_settings_and_the_links() -> None:
    kept = SETTINGS.dashboard
    assert f"for {kept.session_hours} hours after you last did something, and {sessions.MAX_SESSION_DAYS} days" in PAGE
    assert (kept.audit_log_days, "It is kept for a year (`dashboard.audit_log_days`)" in PAGE) == (365, True)
    assert f"works once, for {password_links.INVITATION_HOURS} hours" in PAGE
    assert f"A password reset link works for {password_links.RESET_HOURS} hours" in PAGE
    assert (sessions.TOKEN_SECONDS, "after an hour at the latest" in PAGE) == (3600, True)


def test_the_limits_are_those_of_the_code() -> None:
    streams, mebibyte = live.STREAMS, 1024 * 1024
    assert f"A search examines {messages.MAX_EXAMINED:,} entries at a time" in PAGE
    assert limit_of("users of an account") == f"{SETTINGS.quotas.users} (`quotas.users`)"
    assert limit_of("sender domains of an account") == f"{SETTINGS.quotas.domains} (`quotas.domains`)"
    for kind, quota in usage_limits.QUOTAS.items():
        assert limit_of(f"{usage_limits.QUOTA_NAMES[kind][1]} of an account").partition(";")[0] == f"{quota:,}"
    assert f"{streams.per_account} of an account, {streams.per_process} of a process" in PAGE
    assert f"A count is exact up to {messages.MAX_COUNT:,} messages" in PAGE
    most = (search_query.MAX_CHARACTERS, search_query.MAX_TERMS, search_query.MAX_WORDS)
    assert limit_of("a search") == "{} characters, {} terms, {} words".format(*most)
    assert f"kept for {cleanup.HOURLY_COUNTS_HOURS // 24} days" in limit_of("the charts")
    assert limit_of("the preview") == (
        f"{previews.TEXT_CHARACTERS // 1024} Ki characters of text or HTML, "
        f"{previews.SOURCE_OCTETS // 1024} KiB of the source, images of {previews.IMAGE_OCTETS // mebibyte} MiB each; "
        f"{previews.MAX_IMAGES} remote images"
    )
    assert limit_of("a list of suppressions in the form").startswith(f"{suppressions.FILE_BYTES // mebibyte} MiB")
    assert (live.STREAM_SECONDS, "must allow responses that last five minutes" in PAGE) == (300, True)
    assert f"requests of {routing.MAX_SEND_BODY_BYTES // mebibyte} MiB" in PAGE


def test_every_page_has_its_four_pictures_and_each_is_in_the_gallery() -> None:
    kinds = [f"{size}-{scheme}" for size in screenshots.SIZES for scheme in screenshots.SCHEMES]
    wanted = {PICTURES / f"{page.name}-{kind}.png" for page in pages.PAGES for kind in kinds}
    assert set(PICTURES.glob("*.png")) == wanted
    assert pictures_in(PICTURES / "README.md") == wanted
