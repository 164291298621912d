# Takes the batches; leaves the rows that passed the filter, the numbers of the run, and a verdict.


localrules:
    filter_trajectories,
    compute_statistics,
    merge_trajectories,
    check_run,
    collect,


rule filter_trajectories:
    """Name the rows that are not fit for training, and why."""
    input:
        batches=ALL_BATCHES,
        script=f"{workflow.basedir}/scripts/filter_trajectories.py",
    output:
        discarded="<run>/discarded.jsonl",
    log:
        "<run>/logs/filter_trajectories.log",
    conda:
        "../envs/trajectile.yaml"
    params:
        run_folder=subpath(output.discarded, parent=True),
        require_reasoning=SETTINGS.require_reasoning,
        reasoning_disabled=SETTINGS.reasons_not,
        plan=TARGETS.results_digest,
    shell:
        "python {input.script:q} --run_folder {params.run_folder:q}"
        " --require_reasoning {params.require_reasoning}"
        " --reasoning_disabled {params.reasoning_disabled} > {log:q} 2>&1"


rule compute_statistics:
    """Count tools, reasoning, tokens, failures and time over the whole run."""
    input:
        discarded="<run>/discarded.jsonl",
        dataset=SETTINGS.dataset_file,
        script=f"{workflow.basedir}/scripts/compute_statistics.py",
    output:
        statistics="<run>/statistics.json",
    log:
        "<run>/logs/compute_statistics.log",
    conda:
        "../envs/trajectile.yaml"
    params:
        run_folder=subpath(output.statistics, parent=True),
        max_samples=SETTINGS.max_samples or 0,
        on_bad_row=SETTINGS.on_bad_row,
        max_attempts=SETTINGS.max_attempts or 0,
        plan=TARGETS.results_digest,
    shell:
        "python {input.script:q} --run_folder {params.run_folder:q} --dataset_file {input.dataset:q}"
        " --max_samples {params.max_samples} --on_bad_row {params.on_bad_row}"
        " --max_attempts {params.max_attempts} 2>&1 | tee {log:q}"


rule merge_trajectories:
    """Put the rows that passed into one file, in dataset order."""
    input:
        discarded="<run>/discarded.jsonl",
        statistics="<run>/statistics.json",
        dataset=SETTINGS.dataset_file,
        script=f"{workflow.basedir}/scripts/merge_trajectories.py",
    output:
        trajectories="<run>/trajectories.jsonl",
    log:
        "<run>/logs/merge_trajectories.log",
    conda:
        "../envs/trajectile.yaml"
    params:
        run_folder=subpath(output.trajectories, parent=True),
        max_samples=SETTINGS.max_samples or 0,
        on_bad_row=SETTINGS.on_bad_row,
        superseded_rows=SETTINGS.superseded_rows,
        plan=TARGETS.results_digest,
    shell:
        "python {input.script:q} --run_folder {params.run_folder:q} --dataset_file {input.dataset:q}"
        " --max_samples {params.max_samples} --on_bad_row {params.on_bad_row}"
        " --superseded_rows {params.superseded_rows} > {log:q} 2>&1"


rule check_run:
    """Say what is owed, and fail where too many prompts failed."""
    input:
        trajectories="<run>/trajectories.jsonl",
        statistics="<run>/statistics.json",
        script=f"{workflow.basedir}/scripts/check_run.py",
    output:
        # Snakemake deletes what a failed job declared, and verdict.json is most wanted then
        holds=touch("<run>/.verdict_holds"),
    log:
        "<run>/logs/check_run.log",
    conda:
        "../envs/trajectile.yaml"
    params:
        run_folder=subpath(output.holds, parent=True),
        max_failed_fraction=SETTINGS.max_failed_fraction,
        plan=TARGETS.results_digest,
    shell:
        "python {input.script:q} --run_folder {params.run_folder:q}"
        " --max_failed_fraction {params.max_failed_fraction} 2>&1 | tee {log:q}"


rule collect:
    """Make the results from what is finished so far, running no prompt."""
    input:
        dataset=ancient(SETTINGS.dataset_file),
        filter=ancient(f"{workflow.basedir}/scripts/filter_trajectories.py"),
        statistics=ancient(f"{workflow.basedir}/scripts/compute_statistics.py"),
        merge=ancient(f"{workflow.basedir}/scripts/merge_trajectories.py"),
        report=ancient(f"{workflow.basedir}/scripts/make_report.py"),
        export=ancient(f"{workflow.basedir}/scripts/export_dataset.py"),
        check=ancient(f"{workflow.basedir}/scripts/check_run.py"),
    log:
        "<run>/logs/collect.log",
    conda:
        "../envs/trajectile.yaml"
    params:
        run_folder=RUN_FOLDER,
        max_samples=SETTINGS.max_samples or 0,
        on_bad_row=SETTINGS.on_bad_row,
        max_attempts=SETTINGS.max_attempts or 0,
        require_reasoning=SETTINGS.require_reasoning,
        reasoning_disabled=SETTINGS.reasons_not,
        superseded_rows=SETTINGS.superseded_rows,
        exports=[f"--exports {name}" for name in TARGETS.formats],
        export_options=TARGETS.export_options,
        max_failed_fraction=SETTINGS.max_failed_fraction,
    shell:
        # by the word in .collected the next whole start knows that it has to make all of this anew
        "( python {input.filter:q} --run_folder {params.run_folder:q}"
        " --require_reasoning {params.require_reasoning} --reasoning_disabled {params.reasoning_disabled}"
        " && python {input.statistics:q} --run_folder {params.run_folder:q} --dataset_file {input.dataset:q}"
        " --max_samples {params.max_samples} --on_bad_row {params.on_bad_row}"
        " --max_attempts {params.max_attempts}"
        " && python {input.merge:q} --run_folder {params.run_folder:q} --dataset_file {input.dataset:q}"
        " --max_samples {params.max_samples} --on_bad_row {params.on_bad_row}"
        " --superseded_rows {params.superseded_rows}"
        " && echo $(date +%s)-$$ > {params.run_folder:q}/.collected"
        " && python {input.report:q} --run_folder {params.run_folder:q}"
        " && if [ -n '{params.exports}' ]; then python {input.export:q} --run_folder {params.run_folder:q}"
        " {params.exports} {params.export_options}; fi"
        " && ( python {input.check:q} --run_folder {params.run_folder:q}"
        " --max_failed_fraction {params.max_failed_fraction} || true ) ) 2>&1 | tee {log:q}"
