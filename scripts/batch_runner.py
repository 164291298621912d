"""Run an agent on every prompt of a dataset: the options of the Hermes batch runner, on Snakemake.

Example: python scripts/batch_runner.py --dataset_file=data/prompts.jsonl --batch_size=10 --run_name=my_run
"""

from trajectile.command_line.cli import main

if __name__ == "__main__":
    main(prog_name="batch_runner.py")
