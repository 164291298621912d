"""The tool names that each row of trajectories.jsonl has, so that all rows have the same keys."""

from trajectile.rows import Trajectory


class ToolNames:
    """Every tool the run can offer and every tool that a row to be written names, in sorted order."""

    def __init__(self, offered: list[str]) -> None:
        self._names = set(offered)

    def add(self, row: Trajectory) -> None:
        self._names.update(row.tool_stats, row.tool_error_counts)

    def sorted(self) -> list[str]:
        return sorted(self._names)
