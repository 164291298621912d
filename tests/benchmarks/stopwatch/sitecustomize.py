"""On PYTHONPATH, notes when each Python process began and ended and what it took, and each call of sbatch.

The lines go to the file STOPWATCH_LOG; bench_slurm.py reads them.
"""

import atexit
import json
import os
import resource
import sys
import time

if "STOPWATCH_LOG" in os.environ:
    log = os.open(os.environ["STOPWATCH_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    began = time.time()

    def note(**what: object) -> None:
        os.write(log, json.dumps({**what, "argv": sys.orig_argv}).encode() + b"\n")

    def submitted(event: str, arguments: tuple[object, ...]) -> None:
        if event == "subprocess.Popen" and "sbatch" in str(arguments[1]):
            note(sbatch=str(arguments[1]), began=time.time())

    def ended() -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        note(began=began, ended=time.time(), cpu=used.ru_utime + used.ru_stime, memory=used.ru_maxrss * 1024)

    sys.addaudithook(submitted)
    atexit.register(ended)
