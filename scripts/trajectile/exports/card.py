"""Cards: a README.md whose head spells out splits and features, so that `datasets` loads a folder of any size."""

from pathlib import Path
from typing import Any

import yaml

from trajectile.exports.format import Counts
from trajectile.run_folder.paths import write_atomic

Feature = dict[str, Any]
FOLDER = "path/to/this/folder"


def text(name: str) -> Feature:
    return {"name": name, "dtype": "string"}


def whole(name: str) -> Feature:
    return {"name": name, "dtype": "int64"}


KEYS = [whole("prompt_index"), text("prompt_key")]


def write_card(folder: Path, files: dict[str, str], features: list[Feature], body: str, **head: Any) -> None:
    """Write the card of a folder; `files` maps splits to file patterns."""
    data_files = [{"split": split, "path": path} for split, path in files.items()]
    head |= {
        "configs": [{"config_name": "default", "data_files": data_files}],
        "dataset_info": {"config_name": "default", "features": features},
    }
    written = yaml.safe_dump(head, sort_keys=False, allow_unicode=True)
    write_text(folder / "README.md", f"---\n{written}---\n\n{body}")


def write_text(path: Path, content: str) -> None:
    write_atomic(path, content.encode())


def differences(counts: Counts) -> str:
    """Say in Markdown how many rows there are, and what became of the others."""
    splits = ", ".join(f"{number} in `{split}`" for split, number in counts.splits.items())
    lines = [f"{counts.rows_out} of {counts.rows_in} trajectories: {splits}."]
    lines += [f"- left out, {reason.replace('_', ' ')}: {n}" for reason, n in counts.left_out.items()]
    lines += [f"- noted, {reason.replace('_', ' ')}: {n}" for reason, n in counts.noted.items()]
    if len(lines) > 1:
        lines.insert(1, "`differences.jsonl` names these:\n")
    return "\n".join(lines)
