"""Runs an agent on every prompt of a dataset and gathers the trajectories in data/<run_name>."""

from snakemake.utils import min_version

min_version("9.14.8")


configfile: f"{workflow.basedir}/config/config.yaml"


include: "rules/common.smk"


pathvars:
    run=RUN_FOLDER,


include: "rules/split.smk"
include: "rules/images.smk"
include: "rules/rollout.smk"
include: "rules/results.smk"
include: "rules/report.smk"
include: "rules/export.smk"


localrules:
    all,


rule all:
    """Make the batches of all owed prompts, then the results and the verdict."""
    default_target: True
    input:
        batches=OWED_BATCHES,
        trajectories="<run>/trajectories.jsonl",
        viewer="<run>/viewer.html",
        exports=EXPORTS,
        verdict="<run>/.verdict_holds",


onstart:
    with worded_as(WorkflowError):
        begin(
            RUN,
            asks_model=any(
                job.rule.name == "run_batch" for job in workflow.dag.needrun_jobs()
            ),
            give_up=lambda: workflow.scheduler.exit_gracefully(),
        )


onsuccess:
    end()


onerror:
    say_how_to_go_on(RUN)
    end()
