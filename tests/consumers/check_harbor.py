"""Validates each ATIF file with harbor's validator."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

from harbor.utils.trajectory_validator import TrajectoryValidator

folder = Path(sys.argv[1])
counts = json.loads((folder / "summary.json").read_bytes())["splits"]
found = {}
for split in counts:
    found[split] = 0
    for path in sorted((folder / split).glob("*.json")):
        validator = TrajectoryValidator()
        assert validator.validate(path), (path, validator.get_errors())
        found[split] += 1
assert found == counts, (found, counts)
print(json.dumps({f"harbor {version('harbor')} {split}": rows for split, rows in found.items()}))
