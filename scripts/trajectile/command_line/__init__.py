"""scripts/batch_runner.py: options in, a Snakemake run or a status out."""
