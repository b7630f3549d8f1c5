"""Where each security case of the listeners, identities, contents, templates and tenants is proven: case, words, tests.

Cases with the letters A and I stand in the modules that are named after URLs of webhooks and previews. A case that is
shown where it is decided is not repeated here: the table says where. `test_cases.py` holds it against the tests that
there are, so that none is lost when one is renamed, moved or taken away.
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
    # The deliveries of webhooks.
    "C1": Case(
        "A library trusts every delivery, and nothing that was changed.",
        {
            "services/webhooks/test_signed_requests.py": (
                "test_a_library_trusts_the_request_signed_with_either_secret_and_no_other",
            ),
            "protocol/test_webhook_signature.py": (
                "test_what_is_signed_is_trusted_and_whatever_differs_in_one_bit_is_not",
            ),
        },
    ),
    "C2": Case(
        "The bytes that are sent are those that were written and signed, as the vector has it.",
        {
            "services/webhooks/test_signed_requests.py": ("test_an_endpoint_gets_the_bytes_and_three_headers",),
            "protocol/test_webhook_signature.py": ("test_the_first_vector_is_what_we_send",),
        },
    ),
    "C3": Case(
        "A failing endpoint is tried seven times by the schedule.",
        {
            "webhooks/test_engine.py": ("test_a_endpoint_that_refuses_gets_exactly_seven_attempts_by_the_schedule",),
        },
    ),
    "C4": Case(
        "After a success there are no further attempts.",
        {"security/test_webhook_sender.py": ("test_c4_after_a_success_there_are_no_further_attempts",)},
    ),
    "C5": Case(
        "Both secrets sign during an overlap, and only the new one after it; old ones never show or pile up.",
        {
            "services/webhooks/test_endpoints.py": (
                "test_a_new_secret_ends_the_old_one_at_once",
                "test_with_an_overlap_both_secrets_sign_until_it_is_over_and_at_most_five_old_ones",
            ),
            "webhooks/test_engine.py": ("test_while_an_old_secret_is_good_both_sign",),
            "api/v1/test_webhook.py": ("test_an_endpoint_is_made_with_a_secret_that_is_never_shown_again",),
        },
    ),
    "C7": Case(
        "A replay is the same bytes, signed anew and logged; what is expired or foreign looks like what never was.",
        {
            "services/webhooks/test_delivery_log.py": (
                "test_a_replay_is_a_new_delivery_of_the_same_event_and_bytes",
                "test_one_entry_is_found_and_replayed_by_its_id_in_its_own_account_while_it_is_kept",
            ),
            "services/webhooks/test_signed_requests.py": ("test_every_attempt_is_signed_at_its_own_time",),
        },
    ),
    "C9": Case(
        "An attempt of a dead worker counts, and none is lost.",
        {
            "webhooks/test_engine.py": (
                "test_a_lost_workers_attempt_counts_and_the_next_one_follows",
                "test_a_worker_lost_at_the_last_attempt_is_the_end",
            ),
            "reliability/test_webhook_kill.py": (
                "test_a_kill_before_the_answer_sends_again_with_the_same_bytes",
                "test_a_death_in_the_middle_of_every_attempt_leaves_none_for_later",
            ),
        },
    ),
    "C10": Case(
        "The old URL hears nothing more when a webhook is changed, disabled or removed.",
        {
            "webhooks/test_engine.py": (
                "test_only_the_new_url_hears_of_what_is_still_to_be_sent",
                "test_a_disabled_endpoint_holds_what_it_has_and_goes_on_when_it_is_enabled",
                "test_of_a_deleted_endpoint_nobody_hears_any_more",
            ),
        },
    ),
    "C11": Case(
        "After seven days the log is gone; it holds no secret, and two kilobytes of a body.",
        {
            "services/webhooks/test_delivery_log.py": (
                "test_one_entry_is_found_and_replayed_by_its_id_in_its_own_account_while_it_is_kept",
            ),
            "security/test_stored_secrets.py": ("test_e16_a_dump_of_the_store_holds_no_secret",),
            "api/v1/test_webhook_log.py": ("test_a_long_body_is_shown_up_to_a_whole_character",),
            "webhooks/test_engine.py": ("test_the_log_names_the_delivery_and_nothing_that_is_secret",),
        },
    ),
    "C12": Case(
        "The verifiers of the examples refuse short and empty signatures.",
        {
            "docs/test_webhook_examples.py": ("test_an_example_says_of_every_vector_what_is_right",),
            "protocol/test_webhook_signature.py": ("test_the_vectors_describe_themselves",),
        },
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
            "mail/accept/test_mime_compose.py": ("test_what_names_blind_copies_or_is_for_us_alone_is_taken_out",),
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
    "E12": Case(
        "Failures over HTTP and SMTP are counted together.",
        {
            "security/test_submission.py": ("test_f6_the_fifth_wrong_password_closes_and_counts_for_http",),
            "submission/test_authentication.py": (
                "test_failures_over_http_throttle_logins_here_which_are_refused_temporarily",
            ),
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
    # Submission over SMTP.
    "F1": Case(
        "Nothing but the real end ends a message.",
        {
            "security/test_submission.py": (
                "test_f1_a_false_end_is_refused_and_smuggles_nothing",
                "test_f1_a_false_end_of_bare_lfs_is_content_of_one_message",
            ),
            "protocol/smtp/test_server_content.py": (
                "test_no_other_end_than_the_real_one_ends_a_message",
                "test_a_bare_cr_in_chunks_is_refused",
                "test_wherever_the_bytes_are_cut_the_replies_and_the_messages_are_the_same",
            ),
        },
    ),
    "F2": Case(
        "Only CRLF and doubled dots leave.",
        {
            "security/test_submission.py": (
                "test_f2_only_crlf_and_doubled_dots_leave_for_a_body_by_http",
                "test_f2_lines_of_dots_leave_as_they_came_by_smtp",
            ),
        },
    ),
    "F4": Case(
        "AUTH has its place: under TLS, once, before a transaction; and MAIL comes after it.",
        {
            "security/test_submission.py": (
                "test_f4_auth_before_tls_is_refused_and_tries_no_password",
                "test_f4_mail_before_auth_auth_twice_and_auth_inside_a_transaction_are_refused",
            ),
            "protocol/smtp/test_server.py": ("test_what_was_sent_behind_starttls_in_the_clear_ends_the_session",),
        },
    ),
    "F5": Case(
        "What is no login is refused, and the session lives.",
        {
            "protocol/smtp/test_server.py": (
                "test_a_response_that_is_none_leaves_the_session_alive",
                "test_a_response_has_its_own_limit",
            ),
            "submission/test_authentication.py": ("test_a_wrong_password_is_refused_and_may_be_mended",),
        },
    ),
    "F6": Case(
        "The fifth wrong password ends the session, and counts.",
        {"security/test_submission.py": ("test_f6_the_fifth_wrong_password_closes_and_counts_for_http",)},
    ),
    "F8": Case(
        "A line of a hundred megabytes and a message over its size are refused, and cost no memory.",
        {
            "security/test_submission.py": (
                "test_f8_a_line_of_a_hundred_megabytes_is_refused_and_costs_no_memory",
                "test_f8_a_message_as_large_as_may_be_passes_and_one_octet_more_does_not",
                "test_f8_a_lie_about_the_size_helps_nobody",
            ),
            "protocol/smtp/test_server_content.py": ("test_a_chunk_of_unknown_size_ends_the_session",),
        },
    ),
    "F10": Case(
        "No address is a command in disguise, in or out.",
        {
            "mail/accept/test_validation.py": ("test_no_address_carries_a_line_break_or_an_encoded_word",),
            "protocol/test_address.py": ("test_no_dangerous_character_passes_anywhere",),
            "protocol/smtp/test_client.py": (
                "test_an_address_that_could_do_harm_is_refused_for_good",
                "test_a_command_is_always_one_line",
            ),
        },
    ),
    "F11": Case(
        "Nobody sends as somebody else.",
        {
            "security/test_submission.py": (
                "test_f11_nobody_sends_as_somebody_else",
                "test_f11_nobody_uses_an_envelope_sender_of_somebody_else",
            ),
            "mail/accept/test_mime_compose.py": ("test_readers_see_the_sender_that_was_checked_and_no_other",),
        },
    ),
    "F12": Case(
        "Nobody relays.",
        {
            "security/test_submission.py": ("test_f12_nobody_relays_without_auth",),
        },
    ),
    "F13": Case(
        "What is no SMTP learns nothing, and is closed after some errors.",
        {
            "protocol/smtp/test_server.py": (
                "test_what_needs_no_decision_is_answered_without_one",
                "test_a_client_that_errs_too_often_is_let_go",
                "test_a_browser_is_let_go_before_its_body_is_obeyed",
            ),
        },
    ),
    "F14": Case(
        "What was acknowledged survives a kill.",
        {
            "submission/test_durability.py": ("test_a_message_survives_a_kill_right_after_its_acknowledgement",),
            "reliability/test_kill.py": ("test_a_listener_killed_again_and_again_loses_and_duplicates_nothing",),
        },
    ),
    "F15": Case(
        "A hundred hosts are a loop.",
        {"security/test_submission.py": ("test_f15_a_hundred_received_fields_are_a_loop",)},
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
                "test_g1_no_variable_by_smtp_becomes_a_header",
            ),
        },
    ),
    "G2": Case(
        "Headers that are ours are not the caller's to write.",
        {
            "mail/accept/test_validation.py": (
                "test_reserved_headers_are_refused_in_any_case",
                "test_a_header_name_is_a_token",
            ),
            "mail/accept/test_mime_compose.py": ("test_what_names_blind_copies_or_is_for_us_alone_is_taken_out",),
            "mail/accept/test_mime_validation.py": (
                "test_an_unknown_field_of_ours_is_refused_by_its_name",
                "test_a_field_that_may_stand_once_is_refused_when_it_stands_twice",
            ),
        },
    ),
    "G5": Case(
        "The name of a file makes no file, and is harmless where it is served.",
        {
            "security/test_attachments.py": ("test_g5_names_make_no_files_and_are_served_under_generated_ones",),
            "mail/accept/test_attachment_validation.py": ("test_what_is_not_the_plain_name_of_a_file_is_refused",),
            "protocol/test_file_names.py": (
                "test_a_name_comes_back",
                "test_a_name_keeps_what_is_seen_of_its_last_part",
            ),
        },
    ),
    "G6": Case(
        "Files are base64, of a bounded number and size, counted as they are sent.",
        {
            "mail/accept/test_attachment_validation.py": (
                "test_20_files_pass_and_one_more_does_not",
                "test_content_is_decoded",
                "test_content_that_is_not_base64_is_refused",
            ),
            "security/test_attachments.py": ("test_g6_one_byte_over_the_limit_is_too_large_however_it_is_spread",),
        },
    ),
    "G7": Case(
        "A message of endless depth, breadth or length costs a bounded amount of work, wherever it is opened.",
        {
            "security/test_attachments.py": (
                "test_g7_depth_without_end_passes_unopened",
                "test_g7_breadth_without_end_passes_unopened",
            ),
            "security/test_bombs.py": (
                "test_g7_of_a_bomb_a_bounded_part_is_shown",
                "test_g7_files_without_end_are_refused",
            ),
            "protocol/mime/test_message_parser.py": ("test_a_header_has_bounds",),
            "protocol/mime/test_preview_parser.py": ("test_a_bomb_is_read_in_one_pass",),
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
            "security/test_submission.py": (
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
