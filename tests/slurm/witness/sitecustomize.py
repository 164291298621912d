"""On PYTHONPATH, notes the files that Snakemake opens in the jobs of a cluster, in the file WITNESS_LOG."""

import os
import sys

if "SLURM_JOB_ID" in os.environ and "WITNESS_LOG" in os.environ and "snakemake" in sys.orig_argv:
    log = os.open(os.environ["WITNESS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            os.write(log, f"{arguments[0]}\n".encode(errors="replace"))

    sys.addaudithook(note)
