"""Pages are tested over HTTP with a real context: every route and one way through each page on both engines.

The rest runs on SQLite alone, because what engines do differently is tested on both where it is: in services and
storage.
"""

from typing import Final

import pytest

from tests.contexts import clock, ctx
from tests.dashboard.browser_client import (
    analyst,
    browser,
    mail,
    member,
    mine,
    nobody,
    operator,
    prepared,
    reader,
    served,
    settings,
    site,
    stranger,
    switch,
    theirs,
)

__all__ = [
    "analyst",
    "browser",
    "clock",
    "ctx",
    "mail",
    "member",
    "mine",
    "nobody",
    "operator",
    "prepared",
    "reader",
    "served",
    "settings",
    "site",
    "stranger",
    "switch",
    "theirs",
]

ON_BOTH: Final = ("test_every_route", "test_live")
WAYS: Final = {
    "test_api_keys": "test_a_new_key_is_shown_once_and_may_send",
    "test_bulk_actions": "test_what_was_never_attempted_is_canceled_and_the_rest_goes_on",
    "test_credentials": "test_a_new_credential_shows_its_password_once_and_it_works",
    "test_credits": "test_the_balances_and_the_ledger_show_where_credits_went",
    "test_deliveries": "test_a_replay_is_a_delivery_of_its_own",
    "test_domains": "test_the_form_registers_a_domain_and_leads_to_its_records",
    "test_audit_log": "test_entries_are_filtered_by_actor_action_target_and_date",
    "test_consistency_checks": "test_a_check_is_started_and_its_result_is_shown",
    "test_accounts": "test_each_change_is_made_and_told_by_the_accounts_own_log",
    "test_view_as": "test_the_content_of_a_message_is_nowhere_until_it_was_asked_for",
    "test_operator_audit_log": "test_entries_of_all_accounts_name_the_account_and_the_operator",
    "test_lists": "test_a_list_goes_on_until_its_end",
    "test_login": "test_the_right_password_opens_a_session_in_a_cookie_that_scripts_cannot_read",
    "test_message": "test_what_waits_can_be_tried_now",
    "test_message_rows": "test_the_row_shows_the_failure_among_several_recipients",
    "test_messages": "test_a_search_shows_what_it_finds_and_keeps_its_words",
    "test_messages_export": "test_every_recipient_is_a_row_and_no_cell_is_a_formula",
    "test_neighbours": "test_the_way_to_the_next_message_and_back_keeps_the_search",
    "test_overview": "test_what_was_sent_is_counted",
    "test_profile": "test_a_new_password_keeps_this_session_and_ends_the_others",
    "test_sources": "test_an_address_is_paused_drained_resumed_and_warmed_up",
    "test_providers": "test_limits_are_changed_and_given_back_to_the_settings",
    "test_queue": "test_a_change_is_counted_then_confirmed_then_a_job",
    "test_requests": "test_a_refused_request_is_listed_filtered_and_opened",
    "test_saved_views": "test_a_search_is_saved_renamed_and_removed",
    "test_suppressions": "test_the_list_is_narrowed",
    "test_tail": "test_every_event_is_a_line_oldest_first",
    "test_team": "test_an_invitation_is_a_link_that_is_shown_once",
    "test_templates": "test_a_template_is_changed_and_removed",
    "test_webhook": "test_the_log_shows_who_how_and_what_came_of_it",
    "test_welcome": "test_the_webhook_of_the_latest_test_is_shown_with_its_answer",
}


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of a store without rows."""
    return str(request.getfixturevalue(f"clean_{request.param}_url"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Say on which engines a test runs; a way that has another name now is an error, not one engine less."""
    if "database_url" not in metafunc.fixturenames:
        return
    module = metafunc.module.__name__.rpartition(".")[2]
    way = WAYS.get(module)
    assert way is None or hasattr(metafunc.module, way), f"{module} has no {way}"
    on_both = module in ON_BOTH or metafunc.function.__name__ == way
    metafunc.parametrize("database_url", ["sqlite", "postgres"] if on_both else ["sqlite"], indirect=True)
