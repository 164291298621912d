"""Each option has a test that shows its effect: the list of them, kept honest."""

import re
from pathlib import Path

import pytest
from test_options import OWN
from trajectile.configuration.schema import schema

TESTS = Path(__file__).parent
EFFECTS = """
test_batch_runner.py::test_the_reference_command_runs_resumes_and_takes_another_dataset
    dataset_file resume api_key
test_batch_runner.py::test_dry_run_shows_the_shards_and_leaves_nothing
    run_name dry_run batch_size num_workers
test_batch_runner.py::test_list_distributions_prints_a_table
    list_distributions
test_command_line.py::test_status_reads_the_run_folder_only
    status watch
test_command_line.py::test_clean_removes_what_the_dead_left_and_never_results
    clean
test_command_line.py::test_failed_prompts_are_left_alone_until_they_are_to_be_retried
    max_attempts retry_failed
test_effects.py::test_model_and_toolsets_are_in_the_request_that_goes_to_the_endpoint
    model base_url distribution
test_effects.py::test_a_limit_ends_the_prompt
    max_turns max_tokens_per_prompt
test_effects.py::test_a_command_ends_at_its_time_and_its_output_at_its_limit
    command_timeout output_limit
test_effects.py::test_a_model_call_ends_at_its_time_and_is_retried_so_often
    request_timeout max_retries
test_effects.py::test_no_prompt_is_begun_within_the_margin_of_a_jobs_end
    walltime_margin
test_tools_media.py::test_a_model_that_fails_is_an_error_result
    vision_timeout image_timeout
test_effects.py::test_no_more_rows_are_planned_than_asked_for
    max_samples
test_effects.py::test_what_is_not_checked_beforehand_is_found_by_the_shard
    preflight
test_split_dataset.py::test_bad_rows_are_left_out_as_the_plan_left_them_out
    on_bad_row
test_preparation.py::test_toolsets_that_are_missing_stop_or_are_dropped
    missing_toolsets
test_shard.py::test_no_more_prompts_are_in_flight_than_asked_for
    concurrency
test_shard.py::test_time_that_runs_out_is_a_row_after_an_answer_and_a_failure_before
    prompt_timeout
test_shard.py::test_an_outage_stops_the_shard_and_leaves_it_owed
    max_consecutive_failures
test_episode.py::test_toolsets_are_drawn_by_content_and_seed_alone
    seed
test_episode.py::test_system_prompt_and_examples_are_sent_and_in_no_row
    ephemeral_system_prompt
test_prefill.py::test_messages_are_taken_as_they_are
    prefill_messages_file
test_controls.py::test_a_setting_goes_over_the_wire_as_documented
    max_tokens temperature top_p extra_body providers_allowed providers_ignored providers_order provider_sort
    reasoning_effort reasoning_max_tokens reasoning_disabled
test_costs.py::test_a_prompt_that_costs_too_much_is_a_row_with_what_it_has
    max_cost_per_prompt price_prompt_per_million price_completion_per_million
test_costs.py::test_a_run_that_costs_too_much_stops_and_keeps_everything
    max_cost
test_check_run.py::test_too_many_failures_end_with_status_1_after_the_verdict_is_written
    max_failed_fraction
test_settling.py::test_run_takes_the_runs_own_and_leaves_the_rest
    settings_change
faults/test_cases.py::test_discarded_rows_have_their_reason_and_are_not_paid_for_again
    require_reasoning
test_merge_trajectories.py::test_superseded_rows_can_be_kept_after_all_others
    superseded_rows
test_events.py::test_each_event_is_a_line_and_a_prompts_start_is_cut
    log_prefix_chars local_isolation
test_events.py::test_verbose_logs_model_calls_and_tool_calls
    verbose
faults/test_cases.py::test_exports_do_not_tell_that_a_run_was_killed_and_cut_anew
    exports
test_export_dataset.py::test_only_completed_rows
    export_only_completed
test_export_dataset.py::test_minimum_of_turns_counts_the_models_own
    export_min_turns
test_export_dataset.py::test_maximum_of_tokens_is_an_estimate_from_the_size
    export_max_tokens
test_export_dataset.py::test_failing_calls_go_with_their_results_and_empty_turns
    export_drop_failed_calls
test_export_dataset.py::test_validation_split_keeps_the_rows_of_a_prompt_together
    export_validation_fraction
test_export_dataset.py::test_duplicates
    export_deduplicate
test_images.py::test_never_fetches_nothing
    image_pull
test_check_images.py::test_images_of_owed_prompts_are_reported_and_kept_in_run_json
    sandbox sandbox_image
sandbox_contract/test_isolation.py::test_limits_hold
    sandbox_memory sandbox_pids
test_sandbox_modal.py::test_what_is_asked_of_modal
    sandbox_cpus
test_sandbox_docker.py::test_a_read_only_container_has_room_in_memory_alone
    sandbox_read_only sandbox_tmpfs
test_sandbox_docker.py::test_a_user_without_rights
    sandbox_user
test_sandbox_docker.py::test_only_the_folders_that_the_user_lists_are_seen
    sandbox_mounts
test_sandbox_docker.py::test_a_network_that_is_asked_for_is_joined
    sandbox_network
test_own_tools.py::test_an_own_distribution_takes_the_place_of_one_of_its_name
    distributions_file
test_own_tools.py::test_an_installed_package_offers_tools_by_an_entry_point
    tool_files
test_tools_mcp.py::test_prompts_use_a_server_from_start_to_end
    mcp_servers
test_tools_mcp.py::test_a_server_that_is_of_no_use_stops_the_start
    mcp_timeout
test_tools_code.py::test_the_time_limit_of_the_settings_holds
    code_timeout
test_tools_code.py::test_limits_of_a_script
    code_max_calls
test_serving.py::test_all_shards_of_a_machine_share_one_start_and_no_process_is_left
    serve_command
test_serving.py::test_a_server_that_never_answers_is_ended_with_all_that_it_started
    serve_timeout
test_tools_web_search.py::test_auto_takes_what_is_there
    web_provider searxng_url
test_tools_web_search.py::test_the_default_needs_nothing_more
    web_base_url
test_tools_web.py::test_what_cannot_be_read_is_told_in_a_few_words
    web_timeout web_max_bytes
test_tools_web.py::test_by_default_this_machine_is_out_of_reach
    web_allow_private
test_tools_browser.py::test_what_is_missing_is_said
    browser_path
test_tools_browser.py::test_a_browser_elsewhere_is_used_and_its_key_kept
    browser_cdp_url
test_tools_browser.py::test_a_page_that_never_loads_ends_in_time_with_what_is_there
    browser_timeout
test_tools_browser.py::test_more_prompts_than_places_wait_for_one
    browser_contexts
test_tools_browser.py::test_a_page_that_takes_too_much_memory_is_ended
    browser_memory
test_tools_browser.py::test_downloads_go_into_the_sandbox_up_to_a_size
    browser_max_bytes
test_tools_media.py::test_a_url_that_holds_no_usable_image
    vision_image_limit
test_tools_media.py::test_a_model_beside_the_runs_own_has_its_own_prices_and_no_routing
    vision_model vision_price_prompt_per_million vision_price_completion_per_million
test_tools_media.py::test_an_endpoint_of_a_tool_is_checked_at_the_start
    vision_base_url image_base_url image_model
test_tools_media.py::test_an_image_is_drawn_into_a_file
    image_price
test_tools_media.py::test_a_text_is_spoken_offline
    tts_engine tts_timeout
test_tools_media.py::test_a_text_is_spoken_into_a_file
    tts_voice tts_price_per_million_characters
test_tools_media.py::test_what_is_missing_is_said_with_the_setting
    tts_base_url tts_model
test_trimming.py::test_a_server_that_finds_it_too_long_is_asked_again_with_less
    context_trimming context_window
test_exports_lines.py::test_arguments_as_text_stay_as_the_model_wrote_them
    export_arguments
"""
SHOWN = [
    (test, name)
    for block in re.split(r"\n(?=\S)", EFFECTS.strip())
    for test, *names in [block.split()]
    for name in names
]


def pattern(name: str) -> str:
    """Options may be typed with hyphens, and built of a role and the rest: vision_timeout as {role}_timeout."""
    typed, rest = name.replace("_", "[_-]"), name.partition("_")[2]
    return rf"\b{typed}\b|\{{\w+\}}_{rest}\b"


def test_every_option_has_a_test_of_its_effect() -> None:
    """A new setting needs one, and its line above."""
    assert sorted(name for _, name in SHOWN) == sorted(set(schema()["properties"]) | OWN)


@pytest.mark.parametrize("test", sorted({test for test, _ in SHOWN}))
def test_the_tests_are_there_and_speak_of_their_options(test: str) -> None:
    file, _, function = test.partition("::")
    text = (TESTS / file).read_text(encoding="utf-8")
    assert f"def {function}(" in text
    assert [name for shown_by, name in SHOWN if shown_by == test and not re.search(pattern(name), text)] == []
