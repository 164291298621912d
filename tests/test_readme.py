"""Every command of README.md is typed in a copy of the checkout, in its order; the model is the scripted server."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_server.fixture import ScriptedServer

ROOT = Path(__file__).parents[1]
PARTS = ("Snakefile", "rules", "scripts", "config", "profiles", "envs", "pyproject.toml")
FENCED = re.compile(r"```bash\n(.*?)```", re.S)
INLINE = re.compile(r"`((?:snakemake|python3?|trajectile|batch_runner\.py) [^`]+)`")
MODELS = ["scripted", "anthropic/claude-sonnet-4.6"]
NOT_RUN = {
    "python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[local]' && snakemake --cores 2": "installs",
    "python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[local,dev]' && pytest": "CI runs it",
    "pip install -e '.[slurm]'": "installs",
    "snakemake --workflow-profile slurm --set-resources run_batch:slurm_partition=long": "tests/slurm has a cluster",
}


def commands() -> list[str]:
    """Return the commands in the order of the text, each once: lines of fenced blocks, and code within sentences."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = {match.start(): match[1].replace("\\\n", " ") for match in FENCED.finditer(text)}
    found |= {match.start(): match[1].replace("\n", " ") for match in INLINE.finditer(text)}
    lines = [line.strip() for _, block in sorted(found.items()) for line in block.splitlines()]
    return list(dict.fromkeys(line for line in lines if line))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of what the commands use, in which every endpoint is the scripted server, the embedded model's too."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in PARTS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    (folder / "data").mkdir()
    prompts = (ROOT / "data" / "prompts.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "data" / "prompts.jsonl").write_text("".join(prompts[:3]), encoding="utf-8")
    with ScriptedServer(models=MODELS) as server:
        replace(folder / "config" / "config.schema.yaml", "https://openrouter.ai/api/v1", server.base_url)
        replace(folder / "config" / "config.yaml", "local/smollm2-135m", "scripted")
        yield folder


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_what_is_not_run_is_in_the_readme() -> None:
    assert NOT_RUN.keys() <= set(commands())


@pytest.mark.parametrize("command", [command for command in commands() if command not in NOT_RUN])
def test_a_command_of_the_readme_works(checkout: Path, command: str) -> None:
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = os.environ | {"PATH": os.pathsep.join(folders), "TRAJECTILE_API_KEY": "test", "PYTHONPATH": ""}
    done = subprocess.run(["bash", "-c", command], cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
