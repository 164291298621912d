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
        options=TARGETS.export_options,
    shell:
        "python {input.script:q} --run_folder {params.run_folder:q} --exports {wildcards.format}"
        " {params.options} 2>&1 | tee {log:q}"
