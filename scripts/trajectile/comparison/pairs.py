"""Reads two runs for a comparison and pairs their rows, in about 120 bytes a row."""

from array import array
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajectile.report.viewer import Names
from trajectile.results.sources import FinishedRows
from trajectile.rows import Trajectory
from trajectile.run_folder.ids import make_id
from trajectile.run_folder.paths import RunFolder

ROW_NUMBERS = (
    *("rows", "completed", "reasoned", "turns", "reasoned_turns", "calls", "failed_calls"),
    *("prompt_tokens", "completion_tokens", "cost", "seconds"),
)
ID_BYTES = 20  # the end of a row's identity: half of the key, and the ordinal

Places = NDArray[np.int64]


class ToolUse(NamedTuple):
    """The calls of each tool in each row that used it; the four arrays are parallel."""

    row: Places
    tool: Places
    calls: NDArray[np.float64]
    failed: NDArray[np.float64]


class RunRows:
    """The rows of a run as numbers, in reading order; `names` numbers tools and ends, shared by the runs compared."""

    def __init__(self, folder: RunFolder, tools: Names, ends: Names) -> None:
        self.finished = FinishedRows(folder)
        self._tools, self._ends = tools, ends
        self._ids, self._numbers, self._use = bytearray(), array("f"), array("I")
        self._end, self._place, self._length = array("H"), array("q"), array("I")
        for row, place, length in self.finished:
            self._add(row)
            self._place.append(place)
            self._length.append(length)

    def __len__(self) -> int:
        return len(self._end)

    def _add(self, row: Trajectory) -> None:
        used = [(name, stat) for name, stat in row.tool_stats.items() if stat.count]
        for name, stat in used:
            self._use.extend((len(self), self._tools[name], stat.count, stat.failure))
        self._ids += make_id(row.prompt_key, row.metadata.ordinal)[-ID_BYTES:]
        self._end.append(self._ends[row.end_reason])
        self._numbers.extend(_numbers(row, sum(s.count for _, s in used), sum(s.failure for _, s in used)))

    def ids(self) -> NDArray[np.bytes_]:
        return np.frombuffer(bytes(self._ids), f"S{ID_BYTES}")

    def numbers(self) -> NDArray[np.float32]:
        """Return the numbers of each row, one column for each of ROW_NUMBERS."""
        return np.frombuffer(self._numbers, np.float32).reshape(-1, len(ROW_NUMBERS))

    def ends(self) -> NDArray[np.uint16]:
        return np.frombuffer(self._end, np.uint16)

    def tool_use(self, rows: Places) -> ToolUse:
        """Return the calls of some rows; `row` then counts along `rows`."""
        use = np.frombuffer(self._use, np.uint32).reshape(-1, 4).astype(np.int64)
        rank = np.full(len(self), -1, np.int64)
        rank[rows] = np.arange(len(rows))
        use = use[rank[use[:, 0]] >= 0]
        return ToolUse(rank[use[:, 0]], use[:, 1], use[:, 2].astype(float), use[:, 3].astype(float))

    def place(self, row: int) -> tuple[int, int]:
        return self._place[row], self._length[row]


def _numbers(row: Trajectory, calls: int, failed: int) -> tuple[float, ...]:
    stats, usage = row.reasoning_stats, row.usage
    return (
        *(1, row.completed, stats.turns_with_reasoning > 0),
        *(stats.total_assistant_turns, stats.turns_with_reasoning, calls, failed),
        *(usage.prompt_tokens, usage.completion_tokens, usage.cost, row.metadata.duration_seconds),
    )


def pair(a: RunRows, b: RunRows) -> tuple[Places, Places]:
    """Return the rows of the prompts that both runs finished, equal prompts paired by their ordinal."""
    _, rows_a, rows_b = np.intersect1d(a.ids(), b.ids(), return_indices=True)
    order = np.argsort(rows_a, kind="stable")
    return rows_a[order], rows_b[order]
