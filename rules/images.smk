# Takes the shards; leaves a report on the images that their prompts need, which are then on this machine.


localrules:
    check_images,


rule check_images:
    """Look for the images of the owed prompts, and fetch those that are missing."""
    input:
        manifest=MANIFEST,
        script=ancient(f"{workflow.basedir}/scripts/check_images.py"),
    output:
        report=IMAGES,
    log:
        "<run>/logs/check_images.log",
    conda:
        "../envs/trajectile.yaml"
    params:
        run_folder=subpath(output.report, ancestor=2),
    shell:
        "python {input.script:q} --run_folder {params.run_folder:q} --manifest {input.manifest:q}"
        " --report {output.report:q} 2>&1 | tee {log:q}"
