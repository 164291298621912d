"""The settings of a run, typed, from one schema."""

from pathlib import Path
from typing import Any

import msgspec

from trajectile.configuration.combinations import combinations
from trajectile.configuration.schema import checked
from trajectile.errors import UserError
from trajectile.run_folder.paths import RunFolder


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting, as config/config.schema.yaml describes it."""

    dataset_file: str
    run_name: str
    batch_size: int
    max_samples: int | None
    on_bad_row: str
    distribution: str
    missing_toolsets: str
    distributions_file: str
    tool_files: str
    mcp_servers: str
    mcp_timeout: float
    code_timeout: float
    code_max_calls: int
    model: str
    base_url: str
    serve_command: str
    serve_timeout: float
    max_turns: int
    concurrency: int
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    seed: int
    providers_allowed: str
    providers_ignored: str
    providers_order: str
    provider_sort: str
    reasoning_effort: str
    reasoning_max_tokens: int | None
    reasoning_disabled: bool
    extra_body: str
    ephemeral_system_prompt: str
    prefill_messages_file: str
    sandbox: str
    local_isolation: str
    sandbox_image: str
    sandbox_network: str
    sandbox_memory: str | None
    sandbox_cpus: float | None
    sandbox_pids: int | None
    sandbox_tmpfs: str | None
    sandbox_read_only: bool
    sandbox_user: str
    sandbox_mounts: str
    image_pull: str
    command_timeout: float
    output_limit: int
    web_provider: str
    searxng_url: str
    web_base_url: str
    web_timeout: float
    web_max_bytes: int
    web_allow_private: bool
    browser_path: str
    browser_cdp_url: str
    browser_timeout: float
    browser_contexts: int
    browser_memory: str
    browser_max_bytes: int
    vision_base_url: str
    vision_model: str
    vision_timeout: float
    vision_image_limit: int
    vision_price_prompt_per_million: float | None
    vision_price_completion_per_million: float | None
    image_base_url: str
    image_model: str
    image_timeout: float
    image_price: float | None
    tts_engine: str
    tts_base_url: str
    tts_model: str
    tts_voice: str
    tts_timeout: float
    tts_price_per_million_characters: float | None
    context_trimming: str
    context_window: int | None
    prompt_timeout: float
    max_tokens_per_prompt: int | None
    max_cost_per_prompt: float | None
    max_cost: float | None
    price_prompt_per_million: float | None
    price_completion_per_million: float | None
    request_timeout: float
    max_retries: int
    max_attempts: int | None
    retry_failed: bool
    max_failed_fraction: float
    max_consecutive_failures: int
    walltime_margin: float
    settings_change: str
    require_reasoning: str
    superseded_rows: str
    preflight: bool
    log_prefix_chars: int
    verbose: bool
    exports: str
    export_only_completed: bool
    export_min_turns: int
    export_max_tokens: int
    export_drop_failed_calls: bool
    export_validation_fraction: float
    export_deduplicate: str
    export_arguments: str

    @property
    def folder(self) -> Path:
        return Path("data") / self.run_name

    @property
    def keeps_images(self) -> bool:
        """Whether the machines that prompts run on need their images there."""
        return self.sandbox in ("docker", "singularity")

    @property
    def dataset_path(self) -> Path:
        return Path(self.dataset_file)

    @property
    def tool_sources(self) -> list[str]:
        """Files and names of entry points that hold the user's own tools."""
        return [name for part in self.tool_files.split(",") if (name := part.strip())]

    @property
    def attempts_allowed(self) -> int | None:
        """Failed attempts after which this start leaves a prompt alone, None for never."""
        return None if self.retry_failed else self.max_attempts

    @property
    def reasons_not(self) -> bool:
        """Whether the model is asked not to think."""
        return self.reasoning_disabled or self.reasoning_effort == "none"


def load_settings(config: dict[str, Any]) -> Settings:
    """Check a configuration, fill in the defaults and type it; a UserError names each wrong key and what it takes."""
    values = checked(config)
    settings = msgspec.convert(values | _as_text(values), Settings, strict=False)
    refuse_combinations(settings)
    return settings


def refuse_combinations(settings: Settings) -> None:
    """Raise a UserError that lists the settings that do not go together."""
    if problems := list(combinations(msgspec.structs.asdict(settings))):
        raise UserError("\n".join(problems))


def _as_text(values: dict[str, Any]) -> dict[str, str]:
    """Give run_name and require_reasoning, which YAML may read as a number or a boolean, as text."""
    return {
        "run_name": str(values["run_name"]),
        "require_reasoning": str(values["require_reasoning"]).lower(),
    }


def read_settings(folder: RunFolder) -> Settings:
    """Return the settings that the jobs of a started run go by."""
    try:
        return msgspec.json.decode(folder.settings_json.read_bytes(), type=Settings)
    except FileNotFoundError:
        raise UserError(f"{folder.settings_json} is missing; start the run with snakemake") from None
