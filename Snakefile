"""Runs an agent on every prompt of a dataset and gathers the trajectories in data/<run_name>."""

from snakemake.utils import min_version

min_version("9.14.8")


configfile: f"{workflow.basedir}/config/config.yaml"


include: "rules/common.smk"


pathvars:
    run=RUN_FOLDER,


include: "rules/split.smk"
include: "rules/rollout.smk"
include: "rules/results.smk"


localrules:
    all,


rule all:
    """Make the batches of all owed prompts, then the results and the verdict."""
    default_target: True
    input:
        batches=OWED_BATCHES,
        trajectories="<run>/trajectories.jsonl",
        verdict="<run>/verdict.json",


onstart:
    with worded_as(WorkflowError):
        begin(RUN)


onsuccess:
    end()


onerror:
    end()
