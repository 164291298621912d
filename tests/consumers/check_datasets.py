"""Loads every export folder with `datasets`, as their README.md files say, and compares the rows with the files."""

import json
import sys
from pathlib import Path

import datasets

exports = Path(sys.argv[1])


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def without_nulls(value):
    """What a message did not have comes back as null where features are structs."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def check(name):
    folder = exports / name
    summary = json.loads((folder / "summary.json").read_bytes())
    counts, exact = summary["splits"], name == "messages" and summary["options"]["arguments"] == "object"
    loaded = datasets.load_dataset(str(folder))
    assert {split: rows.num_rows for split, rows in loaded.items()} == counts, (name, loaded, counts)
    for split, rows in loaded.items():
        if name != "parquet":
            assert [row if exact else without_nulls(row) for row in rows] == lines(folder / f"{split}.jsonl"), name
    return sum(counts.values())


found = {name: check(name) for name in sys.argv[2:]}
print(json.dumps({f"datasets {datasets.__version__} {name}": rows for name, rows in found.items()}))
