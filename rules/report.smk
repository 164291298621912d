# Takes the results and the batches; leaves the pictures and tables of the report, and the viewer.


report: "report/workflow.rst"


localrules:
    make_report,


rule make_report:
    """Draw the pictures and tables of the report, and make the viewer."""
    input:
        trajectories="<run>/trajectories.jsonl",
        statistics="<run>/statistics.json",
        script=f"{workflow.basedir}/scripts/make_report.py",
    output:
        numbers=report(
            "<run>/report/numbers.html",
            caption="report/numbers.rst",
            category="1 Overview",
            labels={"result": "numbers of the run"},
        ),
        ends=report(
            "<run>/report/ends.svg",
            caption="report/ends.rst",
            category="1 Overview",
            labels={"result": "how trajectories ended"},
        ),
        failures=report(
            "<run>/report/failures.svg",
            caption="report/failures.rst",
            category="1 Overview",
            labels={"result": "progress and failures over time"},
        ),
        tools=report(
            "<run>/report/tools.svg",
            caption="report/tools.rst",
            category="2 Trajectories",
            labels={"result": "success and failure by tool"},
        ),
        reasoning=report(
            "<run>/report/reasoning.svg",
            caption="report/reasoning.rst",
            category="2 Trajectories",
            labels={"result": "reasoning coverage"},
        ),
        turns=report(
            "<run>/report/turns.svg",
            caption="report/turns.rst",
            category="2 Trajectories",
            labels={"result": "turns"},
        ),
        tokens=report(
            "<run>/report/tokens.svg",
            caption="report/tokens.rst",
            category="3 Expense",
            labels={"result": "tokens"},
        ),
        latency=report(
            "<run>/report/latency.svg",
            caption="report/latency.rst",
            category="3 Expense",
            labels={"result": "time"},
        ),
        cost=report(
            "<run>/report/cost.svg",
            caption="report/cost.rst",
            category="3 Expense",
            labels={"result": "cost"},
        ),
        settings=report(
            "<run>/report/settings.html",
            caption="report/settings.rst",
            category="4 Origin",
            labels={"result": "settings"},
        ),
        provenance=report(
            "<run>/report/provenance.html",
            caption="report/provenance.rst",
            category="4 Origin",
            labels={"result": "provenance"},
        ),
        viewer="<run>/viewer.html",
    log:
        "<run>/logs/make_report.log",
    conda:
        "../envs/trajectile.yaml"
    params:
        run_folder=subpath(output.viewer, parent=True),
        plan=TARGETS.results_digest,
    shell:
        "python {input.script:q} --run_folder {params.run_folder:q} > {log:q} 2>&1"
