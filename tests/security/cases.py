"""Where each security case of the listeners, identities, contents, templates and tenants is proven: case, words, tests.

Cases with the letters A, C, F and I stand in the modules that are named after webhooks, submission and previews. A
case that is shown where it is decided is not repeated here: the table says where. `test_cases.py` holds it
against the tests that there are, so that none is lost when one is renamed, moved or taken away.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Case:
    """One case: what must hold, and the tests that show it, as files below `tests/` with the names of functions."""

    words: str
    tests: Mapping[str, tuple[str, ...]]


GUARD: Final = "network/http/test_guarded_client.py"
ANSWERS: Final = "network/http/test_guarded_client_responses.py"

CASES: Final[Mapping[str, Case]] = {
    # The sender of webhooks.
    "B1": Case(
        "A rebound name is connected where it was checked, and nowhere else.",
        {GUARD: ("test_a_rebound_name_is_only_connected_where_it_was_checked",)},
    ),
    "B2": Case(
        "One private address among public ones blocks them all.",
        {GUARD: ("test_one_private_address_of_a_name_blocks_it",)},
    ),
    "B3": Case("A redirect is not followed.", {ANSWERS: ("test_a_redirect_is_not_followed",)}),
    "B4": Case(
        "An attempt ends after five seconds, whatever is slow.",
        {ANSWERS: ("test_a_slow_endpoint_has_five_seconds_for_everything",)},
    ),
    "B5": Case(
        "Of a body without end two kilobytes are kept, and the connection is closed.",
        {ANSWERS: ("test_of_an_endless_body_the_first_2_kilobytes_are_read",)},
    ),
    "B7": Case(
        "What is no response fails the attempt, and the sender goes on.",
        {ANSWERS: ("test_what_is_no_response_fails_the_attempt",)},
    ),
    "B8": Case(
        "An endpoint that does not prove who it is gets nothing.",
        {ANSWERS: ("test_an_endpoint_with_a_wrong_certificate_is_sent_nothing",)},
    ),
    "B10": Case(
        "Nothing that customers or destinations write becomes a header of the request.",
        {"security/test_webhook_sender.py": ("test_b10_what_customers_and_destinations_write_stays_inside_the_body",)},
    ),
    "B11": Case(
        "The body of a response is kept as text, cut between characters, and shown as JSON.",
        {
            ANSWERS: ("test_a_body_is_kept_as_text_of_whole_characters",),
            "security/test_webhook_sender.py": ("test_b11_a_body_is_kept_as_text_and_shown_as_json",),
        },
    ),
    "B13": Case(
        "Any 2xx is a success, and no answer stretches the schedule.",
        {"security/test_webhook_sender.py": ("test_b13_any_2xx_is_success_and_nothing_stretches_the_schedule",)},
    ),
    # The HTTP listener.
    "D1": Case(
        "One key is one message, though fifty send it at once; every rule of keys holds.",
        {
            "conformance/test_idempotency.py": (
                "test_fifty_identical_requests_at_once_are_one_message",
                "test_a_retry_is_safe",
                "test_another_body_is_a_conflict",
                "test_a_refused_request_does_not_use_up_its_key",
                "test_a_key_belongs_to_the_smtp_credential",
            ),
        },
    ),
    "D2": Case(
        "No route holds more of a body than its limit, however it is sent, and none unpacks one.",
        {
            "security/test_http_requests.py": (
                "test_d2_a_body_that_says_it_is_too_large_is_refused_unread_on_every_route",
                "test_d2_a_body_without_a_length_is_cut_at_the_limit_on_every_route",
                "test_d2_no_route_unpacks_what_is_compressed",
            ),
            "conformance/test_limits.py": ("test_a_stream_beyond_32_mebibytes_is_cut",),
            "conformance/test_bad_input.py": (
                "test_a_length_that_promises_too_much_stores_nothing",
                "test_a_length_that_promises_too_little_is_cut_there",
            ),
        },
    ),
    "D3": Case(
        "JSON that is deep, ambiguous, damaged or of another shape is refused with the error object.",
        {
            "security/test_http_requests.py": (
                "test_d3_no_route_that_takes_json_takes_this",
                "test_d3_nesting_without_end_fails_on_no_route_of_other_apis",
            ),
            "conformance/test_bad_input.py": (
                "test_what_is_not_strict_json_is_refused",
                "test_all_of_it_together_leaves_nothing_behind",
            ),
        },
    ),
    "D5": Case(
        "Tiny chunks and endless forms cost a bounded amount of work.",
        {
            "security/test_http_requests.py": (
                "test_d5_tiny_chunks_are_refused_when_there_are_too_many_of_them",
                "test_d5_a_form_of_a_hundred_thousand_fields_and_one_in_parts_are_refused",
            ),
            "network/test_http_protocol.py": ("test_what_surrounds_the_content_of_chunks_is_bounded",),
        },
    ),
    "D7": Case(
        "Every answer has its id, every refusal is the error object, and no bug is shown to anybody.",
        {
            "conformance/test_endpoints.py": (
                "test_every_response_carries_its_request_id",
                "test_what_is_no_request_gets_a_request_id_too",
            ),
            "conformance/test_errors.py": ("test_a_code_has_its_status_and_the_error_object",),
            "web/test_application.py": ("test_a_bug_is_logged_with_its_id_and_reveals_nothing_to_the_caller",),
        },
    ),
    "D8": Case(
        "No parameter, and no name of one, becomes part of a query.",
        {
            "security/test_http_requests.py": ("test_d8_no_parameter_is_part_of_a_query",),
            "api/v1/test_messages.py": ("test_search_characters_of_sql_are_only_characters",),
        },
    ),
    "D11": Case(
        "Nobody but the sender learns of a blind copy.",
        {
            "security/test_http_requests.py": ("test_d11_nobody_learns_of_a_blind_copy",),
            "security/test_headers.py": ("test_g1_bcc_by_smtp_is_no_recipient_and_leaves_nothing",),
        },
    ),
    "D12": Case(
        "Who is too quick is told when to come back, and the key is still theirs.",
        {"conformance/test_limits.py": ("test_the_request_rate",)},
    ),
    # Identities.
    "E1": Case(
        "A token without a signature opens nothing.",
        {"security/test_authentication.py": ("test_e1_a_token_without_a_signature_opens_nothing",)},
    ),
    "E2": Case(
        "No algorithm but ours is taken.",
        {"security/test_authentication.py": ("test_e2_no_other_algorithm_opens_anything",)},
    ),
    "E3": Case(
        "What a token says of keys is neither used nor fetched.",
        {
            "security/test_authentication.py": ("test_e3_what_a_header_says_of_keys_is_neither_used_nor_fetched",),
        },
    ),
    "E4": Case(
        "A critical extension is refused.",
        {"security/test_authentication.py": ("test_e4_a_critical_extension_opens_nothing",)},
    ),
    "E5": Case(
        "A token is valid for its own purpose only.",
        {"security/test_authentication.py": ("test_e5_a_token_is_valid_for_its_own_purpose_only",)},
    ),
    "E6": Case(
        "A token is good in its own time, which is written as it should be.",
        {
            "security/test_authentication.py": ("test_e6_a_token_outside_its_time_opens_nothing",),
            "services/people/test_tokens.py": ("test_a_token_lives_until_its_last_second",),
        },
    ),
    "E8": Case(
        "A new password and a lock-out end everything that was open.",
        {
            "security/test_authentication.py": (
                "test_e8_whatever_takes_a_password_away_ends_both_kinds_of_sessions",
                "test_e8_what_a_disabled_user_created_sends_no_more",
            ),
            "services/people/test_logins.py": ("test_a_password_that_changes_while_one_logs_in_begins_no_session",),
        },
    ),
    "E9": Case(
        "A link for a password works once, and for a time.",
        {
            "security/test_authentication.py": ("test_e9_a_link_for_a_password_works_once_though_ten_use_it_at_once",),
            "services/people/test_password_links.py": ("test_a_newer_link_a_new_password_and_a_lock_out_end_a_link",),
        },
    ),
    "E10": Case(
        "Links lead where the settings say, whatever a request calls its host.",
        {
            "security/test_authentication.py": ("test_e10_no_field_of_a_request_changes_where_a_link_leads",),
            "dashboard/test_team.py": ("test_the_link_leads_to_the_configured_address_whatever_the_host_says",),
        },
    ),
    "E13": Case(
        "Many log-ins at once share a few threads, and leave the others alone.",
        {
            "security/test_authentication.py": ("test_e13_fifty_log_ins_at_once_leave_the_others_alone",),
            "services/people/test_passwords.py": (
                "test_the_hash_is_argon2id_with_the_documented_cost_and_a_salt",
                "test_a_full_queue_refuses_and_recovers",
            ),
        },
    ),
    "E14": Case(
        "What can be no password is refused before it costs anything.",
        {
            "security/test_authentication.py": ("test_e14_an_impossible_password_is_refused_before_it_is_hashed",),
        },
    ),
    "E15": Case(
        "A key opens from one place alone; a mistyped one costs no look into the store.",
        {
            "security/test_authentication.py": ("test_e15_a_key_opens_from_no_other_place_and_not_when_it_is_revoked",),
            "services/people/test_schemes.py": (
                "test_an_unknown_api_key_is_refused_and_one_with_a_wrong_checksum_without_the_store",
            ),
            "services/people/test_api_keys.py": (
                "test_an_account_sees_its_own_keys_oldest_first_and_revokes_no_others",
            ),
        },
    ),
    "E16": Case(
        "Whoever steals the store has no secret of anybody.",
        {
            "security/test_stored_secrets.py": ("test_e16_a_dump_of_the_store_holds_no_secret",),
            "keys/test_installation_keys.py": ("test_a_secret_holds_more_than_112_random_bits",),
        },
    ),
    "E17": Case(
        "Secrets are looked up by hash or compared as a whole.",
        {
            "security/test_stored_secrets.py": ("test_e17_no_secret_is_compared_character_by_character",),
            "keys/test_installation_keys.py": ("test_of_an_api_key_only_its_sha256_is_kept",),
        },
    ),
    "E19": Case(
        "A cookie alone changes nothing.",
        {
            "security/test_authentication.py": ("test_e19_a_cookie_alone_changes_nothing",),
            "dashboard/test_every_route.py": ("test_a_form_that_is_not_ours_changes_nothing",),
        },
    ),
    "E20": Case(
        "Without a strong key of its own the service does not start.",
        {
            "cli/test_serve.py": ("test_a_missing_or_weak_key_is_refused",),
            "test_config.py": ("test_the_defaults_hold_no_key",),
        },
    ),
    # Headers, addresses, contents.
    "G1": Case(
        "Nothing that a caller writes becomes a header of its own.",
        {
            "security/test_headers.py": (
                "test_g1_no_member_by_http_becomes_a_header",
                "test_g1_what_may_stand_in_a_member_stays_in_its_field",
                "test_g1_what_no_message_may_hold_is_refused_by_smtp",
                "test_g1_what_postroad_reads_is_as_strict_by_smtp",
                "test_g1_no_field_by_smtp_becomes_another",
                "test_g1_bcc_by_smtp_is_no_recipient_and_leaves_nothing",
                "test_g1_no_variable_by_smtp_becomes_a_header",
            ),
        },
    ),
    "G2": Case(
        "Headers that are ours are not the caller's to write.",
        {
            "security/test_headers.py": (
                "test_g2_no_custom_header_by_http_replaces_one_of_ours",
                "test_g2_fields_that_are_not_the_clients_do_not_leave_by_smtp",
                "test_g2_unknown_fields_of_ours_are_refused_by_smtp",
            ),
        },
    ),
    "G5": Case(
        "The name of a file makes no file, and is harmless where it is served.",
        {
            "security/test_attachments.py": (
                "test_g5_a_name_that_leads_elsewhere_is_refused_by_http",
                "test_g5_an_odd_name_arrives_as_it_is",
                "test_g5_names_make_no_files_and_are_served_under_generated_ones",
            ),
        },
    ),
    "G6": Case(
        "Files are base64, of a bounded number and size, counted as they are sent.",
        {
            "security/test_attachments.py": (
                "test_g6_what_is_not_base64_is_refused",
                "test_g6_line_breaks_and_nothing_at_all_are_fine",
                "test_g6_a_thousand_files_are_refused",
                "test_g6_one_byte_over_the_limit_is_too_large_however_it_is_spread",
            ),
        },
    ),
    "G7": Case(
        "A message of endless depth, breadth or length costs a bounded amount of work, wherever it is opened.",
        {
            "security/test_attachments.py": (
                "test_g7_depth_without_end_passes_unopened",
                "test_g7_breadth_without_end_passes_unopened",
                "test_g7_headers_without_end_are_refused",
                "test_g7_members_without_end_are_refused_by_http",
            ),
            "security/test_bombs.py": (
                "test_g7_of_a_bomb_a_bounded_part_is_shown",
                "test_g7_files_without_end_are_refused",
            ),
            "protocol/mime/test_preview_parser_bounds.py": ("test_a_bomb_is_read_in_one_pass",),
        },
    ),
    "G8": Case(
        "What is compressed passes unopened.",
        {"security/test_attachments.py": ("test_g8_what_is_compressed_is_never_unpacked",)},
    ),
    "G9": Case(
        "No file is fetched by its address.",
        {"security/test_attachments.py": ("test_g9_nobody_fetches_a_file_by_its_address",)},
    ),
    # Templates.
    "H1": Case(
        "What stands in a value is sent as it stands.",
        {"security/test_templates.py": ("test_h1_what_stands_in_a_value_is_sent_as_it_stands",)},
    ),
    "H2": Case(
        "A template is no program.",
        {"security/test_templates.py": ("test_h2_no_template_is_a_program",)},
    ),
    "H3": Case(
        "A template cannot access the service's data or code.",
        {"security/test_templates.py": ("test_h3_no_template_reaches_anything_of_the_service",)},
    ),
    "H5": Case(
        "Markup in a value is text, and a line break in it ends no subject.",
        {
            "security/test_templates.py": (
                "test_h5_markup_in_a_value_is_text_in_every_part",
                "test_h5_a_line_break_in_a_value_ends_no_subject",
            ),
        },
    ),
    "H6": Case(
        "A template of another account is like an unknown one.",
        {"security/test_templates.py": ("test_h6_a_template_of_another_account_is_like_an_unknown_one",)},
    ),
    # Tenants and logs.
    "J1": Case(
        "A thing of another account is like an unknown one, wherever its id is given.",
        {
            "security/test_tenants.py": ("test_j1_no_id_of_another_customer_says_more_than_an_unknown_one",),
            "api/v1/test_tenancy.py": (
                "test_every_route_with_a_name_in_its_path_has_a_case",
                "test_a_thing_of_another_account_is_like_an_unknown_one",
            ),
            "dashboard/test_every_route.py": ("test_a_thing_of_another_account_is_like_an_unknown_one",),
            "conformance/test_message.py": ("test_a_message_of_another_account_is_not_found",),
        },
    ),
    "J2": Case(
        "Nobody sends from a domain of another account.",
        {
            "security/test_submission_senders.py": (
                "test_j2_nobody_sends_from_the_domain_of_another_account_over_http_or_smtp",
            ),
        },
    ),
    "J3": Case(
        "Nobody assigns what is ours to assign.",
        {
            "security/test_tenants.py": ("test_j3_nobody_assigns_what_is_ours",),
        },
    ),
    "J4": Case(
        "A list shows one's own rows, a bounded number of them, whatever place is asked for.",
        {
            "security/test_tenants.py": ("test_j4_no_place_in_a_list_leads_to_rows_of_another_customer",),
            "api/v1/test_tenancy.py": ("test_limits_and_cursors_are_bounded",),
        },
    ),
    "J6": Case(
        "Two accounts at once in one process see nothing of each other.",
        {"security/test_tenants.py": ("test_j6_two_customers_at_once_see_nothing_of_each_other",)},
    ),
    "J8": Case(
        "No log holds a secret.",
        {
            "security/test_logs.py": ("test_j8_no_log_holds_a_password_an_auth_payload_or_a_content",),
            "telemetry/test_logs.py": ("test_credentials_are_struck_out_of_tracebacks",),
        },
    ),
    "J9": Case(
        "What needs no credential tells nothing of anybody.",
        {
            "security/test_tenants.py": ("test_j9_what_needs_no_credential_reveals_nothing",),
            "api/test_metrics.py": (
                "test_a_stranger_gets_not_found",
                "test_what_a_proxy_passes_on_is_not_local",
            ),
        },
    ),
}
