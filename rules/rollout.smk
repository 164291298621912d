# Takes a shard of prompts; leaves a batch of trajectories. The only expensive step.


rule run_batch:
    """Run the agent on the prompts of one shard."""
    input:
        manifest=MANIFEST,
        images=IMAGES_TO_CHECK,
        script=ancient(f"{workflow.basedir}/scripts/run_batch.py"),
    output:
        batch="<run>/batch_{shard}.jsonl",
    log:
        "<run>/logs/run_batch/shard_{shard}.log",
    conda:
        "../envs/trajectile.yaml"
    params:
        run_folder=subpath(output.batch, parent=True),
        reason=reason_for,
    message:
        "shard {wildcards.shard}: {params.reason}"
    shell:
        "python {input.script:q} --run_folder {params.run_folder:q} --shard {wildcards.shard}"
        " --manifest {input.manifest:q} >> {log:q} 2>&1"
