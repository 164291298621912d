"""Names, documents and commands stay in step with the code."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from trajectile.command_line import rule_picture
from trajectile.command_line.rule_picture import picture, with_picture

ROOT = Path(__file__).parents[1]
RULES = [
    name for path in (ROOT / "rules").glob("*.smk") for name in re.findall(r"^rule (\w+):", path.read_text(), re.M)
]
STOPS = {"collect"}


@pytest.mark.parametrize("rule", sorted(set(RULES) - STOPS))
def test_each_rule_has_a_script_a_log_and_a_test_of_its_name(rule: str) -> None:
    text = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    body = text.split(f"rule {rule}:")[1].split("\nrule ")[0]
    assert f"scripts/{rule}.py" in body and f"<run>/logs/{rule}" in body
    assert (ROOT / "scripts" / f"{rule}.py").is_file()
    assert (ROOT / "tests" / f"test_{rule}.py").is_file()


def test_top_level_is_the_fixed_one() -> None:
    wanted = {"Snakefile", "rules", "scripts", "config", "envs", "tests", "data", "profiles"}
    assert wanted <= {path.name for path in ROOT.iterdir()}


def readme_commands() -> list[str]:
    return [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("python3 -m venv")]


def test_readme_has_two_set_up_commands_and_ci_runs_the_second() -> None:
    run, test = readme_commands()
    assert run.endswith("snakemake --cores 2") and test.endswith("&& pytest")
    picked = subprocess.run(["grep", "-m", "1", "pytest$", "README.md"], cwd=ROOT, capture_output=True, text=True)
    assert picked.stdout.strip() == test
    assert "grep -m 1 'pytest$' README.md" in (ROOT / ".ci" / "run").read_text()
    assert readme_commands() == [
        line for line in (ROOT / "README.pt-BR.md").read_text().splitlines() if line.startswith("python3 -m venv")
    ]


def test_the_readme_has_the_rules_as_snakemake_draws_them() -> None:
    command = [sys.executable, "-m", "snakemake", "--rulegraph", "mermaid-js", "--config"]
    every_rule = ["run_name=never_begun", "exports=parquet", "sandbox=docker"]
    drawn = subprocess.run([*command, *every_rule], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(RULES) - STOPS == set(re.findall(r"\w+", picture(drawn))) - {"flowchart", "LR", "all"}
    assert with_picture(text, drawn) == text, rule_picture.__doc__
    assert text.count("\n") < 160, "what is longer is for docs/"


def test_conda_environment_lists_the_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    environment = yaml.safe_load((ROOT / "envs" / "trajectile.yaml").read_text())
    assert environment["dependencies"][-1]["pip"] == project["dependencies"]


def test_every_dependency_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    lists = re.findall(r"^(?:dependencies|local|parquet|modal|browser|mcp|slurm|dev) = \[\n(.*?)^\]", text, re.M | re.S)
    lines = [line for part in lists for line in part.splitlines()]
    assert len(lines) > 20 and all(re.search(r'",\s+# \S', line) for line in lines)


def test_the_clusters_profile_repeats_the_default_one_with_a_reason_for_each_key() -> None:
    default, slurm = ((ROOT / "profiles" / name / "config.yaml").read_text() for name in ("default", "slurm"))
    repeated = yaml.safe_load(default)
    del repeated["cores"]  # which would cap the threads of jobs
    assert repeated.items() <= yaml.safe_load(slurm).items()
    lines = slurm.splitlines()
    keys = [number for number, line in enumerate(lines) if re.match("[a-z][a-z-]+:", line)]
    assert len(keys) > 15 and [lines[number] for number in keys if not lines[number - 1].startswith("# ")] == []


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        ["snakefmt", "--check", "Snakefile", "rules"],
        ["snakemake", "--lint"],
    ],
    ids=" ".join,
)
def test_linters_are_content(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
