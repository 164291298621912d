"""The environments of the consumers: one virtual environment each, since their requirements exclude one another."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

TORCH = "torch==2.13.0"
# No test reaches the audio library, which does not load beside a CPU build of torch.
TORCHAUDIO = '"""Stands in for the audio library."""\n'


class Environment(NamedTuple):
    """`alone` is installed without what it requires, `packages` with; `newer` ones need Python 3.12."""

    packages: tuple[str, ...]
    alone: tuple[str, ...] = ()
    newer: bool = False
    modules: tuple[tuple[str, str], ...] = ()


ENVIRONMENTS = {
    "trl": Environment(("datasets==5.2.0", "trl==1.16.0", "jinja2")),
    "llamafactory": Environment(
        (
            *("datasets==4.0.0", "transformers==5.6.0", "accelerate==1.11.0", "peft==0.18.1", "trl==0.24.0"),
            *("tyro<0.9.0", "omegaconf", "sentencepiece", "tiktoken", "scipy", "einops", "fire", "protobuf"),
            *("av==16.0.0", "pydantic", "pyyaml"),
        ),
        alone=("llamafactory==0.9.5",),
        modules=(("torchaudio.py", TORCHAUDIO),),
    ),
    "axolotl": Environment(
        (
            *("transformers==5.16.1", "datasets==4.8.4", "trl==1.9.0", "peft==0.20.0", "accelerate==1.13.0"),
            *("addict", "fire", "pyyaml", "pydantic==2.12.5", "requests", "einops", "colorama", "numpy>=2.1"),
            *("python-dotenv", "fastcore", "schedulefree", "mistral-common==1.11.5", "posthog==6.7.11", "numba"),
            "axolotl-contribs-lgpl==0.0.7",
        ),
        alone=("axolotl==0.19.0",),
    ),
    "harbor": Environment(("harbor==0.26.0",), newer=True),
}
OFFLINE = {"HF_HUB_OFFLINE": "1", "AXOLOTL_DO_NOT_TRACK": "1", "DO_NOT_TRACK": "1", "CUDA_VISIBLE_DEVICES": ""}


def python_of(cache: Path, name: str) -> Path:
    return cache / name / "bin" / "python"


def install(cache: Path, name: str, newer_python: str) -> None:
    """Make an environment, or leave one that is complete as it is."""
    complete, wanted = cache / name / "complete", ENVIRONMENTS[name]
    if complete.exists():
        return
    subprocess.run(
        [newer_python if wanted.newer else sys.executable, "-m", "venv", "--clear", cache / name], check=True
    )
    pip = [python_of(cache, name), "-m", "pip", "install", "--quiet"]
    if wanted.alone or name == "trl":
        subprocess.run([*pip, TORCH], check=True)
    if wanted.alone:
        subprocess.run([*pip, "--no-deps", *wanted.alone], check=True)
    subprocess.run([*pip, *wanted.packages], check=True)
    [site] = (cache / name / "lib").glob("python3.*/site-packages")
    for module, text in wanted.modules:
        (site / module).write_text(text)
    complete.touch()


def run_check(cache: Path, name: str, check: str, *arguments: str) -> str:
    """Run a check in an environment; returns its last line of output."""
    command = [python_of(cache, name), Path(__file__).with_name(f"check_{check}.py"), *arguments]
    environment = os.environ | OFFLINE | {"HF_HOME": str(cache / "huggingface")}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]
