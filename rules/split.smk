# Takes the dataset and what is finished; leaves shard files with the owed prompts, and a manifest.


localrules:
    split_dataset,


rule split_dataset:
    """Cut the owed prompts into shards, keeping shards that were begun."""
    input:
        dataset=ancient(SETTINGS.dataset_file),
        script=ancient(f"{workflow.basedir}/scripts/split_dataset.py"),
    output:
        manifest=MANIFEST,
    log:
        "<run>/logs/split_dataset.log",
    conda:
        "../envs/trajectile.yaml"
    params:
        run_folder=subpath(output.manifest, ancestor=2),
        batch_size=SETTINGS.batch_size,
        max_samples=SETTINGS.max_samples or 0,
        max_attempts=SETTINGS.attempts_allowed or 0,
        on_bad_row=SETTINGS.on_bad_row,
        digest=TARGETS.digest,
    shell:
        "python {input.script:q} --run_folder {params.run_folder:q} --dataset_file {input.dataset:q}"
        " --batch_size {params.batch_size} --max_samples {params.max_samples}"
        " --max_attempts {params.max_attempts} --on_bad_row {params.on_bad_row:q}"
        " --digest {params.digest:q} > {log:q} 2>&1"
