"""Which tests run, in which order, and what collecting them costs. Registered as a plugin by `tests/conftest.py`.

Workers collect the same tests in the same order, and `--dist worksteal` gives each of them an equal part of the list,
from its beginning on. So the tests that wait longest are at the beginning of parts: at the end of a run they would
keep one worker busy while the others have nothing left to do.
"""

import contextlib
import gc
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.reliability import profile

# Where tests call services that are tested on both engines themselves, or are about requests that no store hears of.
# Here `make test` takes one test of each file to PostgreSQL as well, and those that do several things at once, because
# engines differ in what they lock; `make test-all` takes all of them.
MOSTLY_ONE_ENGINE: Final = (
    "tests/api/",
    "tests/cli/",
    "tests/conformance/test_attachments.py",
    "tests/conformance/test_authentication.py",
    "tests/conformance/test_bad_input.py",
    "tests/conformance/test_endpoints.py",
    "tests/conformance/test_errors.py",
    "tests/conformance/test_events.py",
    "tests/conformance/test_limits.py",
    "tests/conformance/test_message.py",
    "tests/conformance/test_send_request.py",
    "tests/conformance/test_send_response.py",
    "tests/conformance/test_service.py",
    "tests/conformance/test_webhook_endpoints.py",
    "tests/dashboard/",
    "tests/delivery/test_bad_peers.py",
    "tests/delivery/test_expiry.py",
    "tests/inbound/",
    "tests/reliability/test_dns_dead.py",
    "tests/reliability/test_frontends.py",
    "tests/reliability/test_store_slow.py",
    # Rules over rows that `tests/storage` writes and reads on both engines.
    "tests/mail/accept/test_key_limits.py",
    "tests/mail/accept/test_rendering.py",
    "tests/mail/accept/test_submit_batch.py",
    "tests/mail/accept/test_submit_mime.py",
    "tests/mail/accept/test_test_mode.py",
    "tests/mail/results/test_bounce_guard",
    "tests/mail/results/test_complaints.py",
    "tests/mail/results/test_report_authentication.py",
    "tests/mail/signing/",
    "tests/services/accounts/",
    "tests/services/domains/",
    "tests/services/messages/",
    "tests/services/operations/checks/",
    "tests/services/operations/notices/",
    "tests/services/operations/test_cleanup.py",
    "tests/services/operations/test_consistency.py",
    "tests/services/operations/test_operator_mail.py",
    "tests/services/operations/test_tls_report",
    "tests/services/people/test_",
    "tests/services/queue/",
    "tests/services/suppressions/",
    "tests/services/templates/",
    "tests/services/test_",
    "tests/services/webhooks/test_account_events.py",
    "tests/services/webhooks/test_delivery_log.py",
    "tests/services/webhooks/test_endpoints.py",
    "tests/services/webhooks/test_event_types.py",
    "extensions/tests/test_format_endpoints.py",
    "tests/services/webhooks/test_ping.py",
)
AT_ONCE: Final = frozenset({"gather", "TaskGroup", "create_task"})
# What `make test` leaves to `make test-all`. Of the clients, `make test` tries each one with a real service, and one in
# Python and one in JavaScript with the scripted server too. Twins on PostgreSQL that show only what they show on
# SQLite; chains of management requests; and the newer of two old versions of Python.
LONG_ONLY: Final = (
    "tests/browser/test_incident.py",
    "tests/clients/test_conformance.py::test_a_client_passes_its_own_tests",
    *(
        f"tests/clients/test_conformance.py::test_a_client_does_what_every_scenario_expects[{language}]"
        for language in ("go", "java", "php", "python-async", "ruby")
    ),
    "tests/clients/test_python_versions.py::test_an_old_python_does_what_the_scenarios_expect[3.10]",
    "tests/openapi/test_schemathesis.py::test_the_other_engine_makes_no_difference",
    "tests/openapi/test_schemathesis.py::test_what_one_request_makes_the_next_one_finds[everything else]",
    # The next case has the same inputs and one guard fewer (no sandbox on the frame), and the real page is seen by
    # `tests/browser/test_preview.py`.
    "tests/security/test_previews.py::test_hostile_html_does_nothing[as in the dashboard]",
    *(
        f"tests/reliability/test_frontends.py::test_{what}]"
        for what in (
            "a_message_of_ten_mebibytes_is_handed_over_whole[postgres",
            "however_it_ends_under_load_nothing_is_lost_and_nobody_is_left_behind[postgres-asked to stop",
            "however_it_ends_under_load_nothing_is_lost_and_nobody_is_left_behind[postgres-frontend killed",
            "however_it_ends_under_load_nothing_is_lost_and_nobody_is_left_behind[postgres-group asked to stop",
        )
    ),
    (
        "tests/security/test_operator_api.py::"
        "test_an_owner_is_refused_alike_for_ids_of_others_and_unknown_ones_and_changes_nothing[postgres]"
    ),
)
# Each group has servers or programs that its tests share, so it stays together.
LONGEST: Final = (
    ("tests/openapi/test_schemathesis.py", "tests/clients/test_conformance.py"),
    ("tests/browser/", "tests/security/test_previews.py"),
    ("tests/reliability/test_s", "tests/reliability/test_w", "tests/chaos/", "tests/cli/test_dev.py"),
    ("tests/reliability/", "tests/delivery/test_fair_", "tests/dashboard/test_library_snippets.py"),
)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let each worker begin to import at another file.

    To rewrite the assertions of a file takes many times as long as to read them from a file that was written before.
    Workers that import in the same order would all do the same work on a new machine; so they do a part each.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if not worker or session.config.args != session.config.getini("testpaths"):
        return
    files = sorted(session.config.rootpath.glob("tests/**/test_*.py"))
    first = len(files) * int(worker) // _worker_count()
    for file in (*files[first:], *files[:first]):
        # What goes wrong here is told when the file is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(session.config.rootpath).with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not profile.IS_LONG:
        left_out = _left_out(items)
        config.hook.pytest_deselected(items=left_out)
        without = set(left_out)
        items[:] = [item for item in items if item not in without]
    if "PYTEST_XDIST_WORKER" in os.environ:
        items[:] = dealt(items, workers=_worker_count())


def pytest_collection_finish() -> None:
    """Half a million objects stay until the end, so the garbage collector need not look at them again and again."""
    gc.freeze()
    gc.enable()


def dealt(items: Sequence[pytest.Item], *, workers: int) -> list[pytest.Item]:
    """The same tests, with the groups of the longest at the beginning of what each worker gets."""
    groups: list[list[pytest.Item]] = [[] for _ in range(workers)]
    others: list[pytest.Item] = []
    for item in items:
        found = next((number for number, names in enumerate(LONGEST) if item.nodeid.startswith(names)), None)
        (others if found is None else groups[found % workers]).append(item)
    share = len(items) // workers
    ordered: list[pytest.Item] = []
    for group in groups[:-1]:
        count = max(0, share - len(group))
        ordered += group + others[:count]
        del others[:count]
    return ordered + groups[-1] + others


def _left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    chosen: dict[Path, str] = {}
    return [
        item
        for item in items
        if isinstance(item, pytest.Function) and (item.nodeid.startswith(LONG_ONLY) or _is_second_of_file(item, chosen))
    ]


def _is_second_of_file(item: pytest.Function, chosen: dict[Path, str]) -> bool:
    """Whether it goes to PostgreSQL in a file of which another test does so already."""
    return (
        item.nodeid.startswith(MOSTLY_ONE_ENGINE)
        and hasattr(item, "callspec")
        and "postgres" in item.callspec.params.values()
        and AT_ONCE.isdisjoint(item.function.__code__.co_names)
        and chosen.setdefault(item.path, item.nodeid) != item.nodeid
    )


def _worker_count() -> int:
    return int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
