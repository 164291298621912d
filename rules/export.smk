# Takes the merged trajectories; leaves them in the formats of trainers, a folder a format.


localrules:
    export_dataset,


wildcard_constraints:
    format="[a-z]+",


rule export_dataset:
    """Write the trajectories in the format of a trainer."""
    input:
        trajectories="<run>/trajectories.jsonl",
        statistics="<run>/statistics.json",
        script=f"{workflow.basedir}/scripts/export_dataset.py",
    output:
        summary="<run>/exports/{format}/summary.json",
    log:
        "<run>/logs/export_dataset/{format}.log",
    conda:
        "../envs/trajectile.yaml"
    params:
        run_folder=subpath(output.summary, ancestor=3),
        only_completed=SETTINGS.export_only_completed,
        min_turns=SETTINGS.export_min_turns,
        max_tokens=SETTINGS.export_max_tokens,
        drop_failed_calls=SETTINGS.export_drop_failed_calls,
        validation_fraction=SETTINGS.export_validation_fraction,
        deduplicate=SETTINGS.export_deduplicate,
        arguments=SETTINGS.export_arguments,
        seed=SETTINGS.seed,
    shell:
        "python {input.script:q} --run_folder {params.run_folder:q} --exports {wildcards.format}"
        " --export_only_completed {params.only_completed} --export_min_turns {params.min_turns}"
        " --export_max_tokens {params.max_tokens} --export_drop_failed_calls {params.drop_failed_calls}"
        " --export_validation_fraction {params.validation_fraction} --export_deduplicate {params.deduplicate}"
        " --export_arguments {params.arguments} --seed {params.seed} 2>&1 | tee {log:q}"
