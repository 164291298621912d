"""From trajectories.jsonl to folders of exports, in one streaming pass for all formats that are asked for."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from trajectile.errors import UserError
from trajectile.exports.example import Example, LeftOut, example_of
from trajectile.exports.format import Counts, Target, Writer
from trajectile.exports.formats import FORMATS
from trajectile.exports.run import Run, ToolCatalogue, read_run
from trajectile.exports.selection import Options, Selection
from trajectile.exports.writing import close_durably, replacing_folder
from trajectile.rows import PromptKey
from trajectile.run_folder.journal import ENCODER, TRAJECTORY, row_lines
from trajectile.run_folder.paths import RunFolder, write_atomic

OVERVIEW = """# Exports

The trajectories of this run in the formats of trainers; the setting `exports` says which are made. Each folder
has a README.md on its columns, `summary.json` with the counts of rows, and `differences.jsonl`, which names
each row that was left out or has something to be noted.

{lines}
"""


class Difference(msgspec.Struct):
    """A line of differences.jsonl: a row that is not in the export, or in it with something to know about."""

    prompt_index: int
    prompt_key: PromptKey
    ordinal: int
    left_out: bool
    reason: str


class Summary(msgspec.Struct):
    """summary.json of an export."""

    format: str
    rows_in: int
    rows_out: int
    splits: dict[str, int]
    left_out: dict[str, int]
    noted: dict[str, int]
    options: dict[str, bool | int | float | str]


class Export:
    """One format being written; counts what becomes of each row."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.rows_in = 0
        self.splits: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.noted: Counter[str] = Counter()
        self._differences = (writer.target.folder / "differences.jsonl").open("wb")

    def add(self, example: Example, split: str) -> None:
        self.rows_in += 1
        try:
            notes = self.writer.add(example, split)
        except LeftOut as left:
            self._differ(example, left.reason, left_out=True)
            return
        self.splits[split] += 1
        for note in notes:
            self._differ(example, note, left_out=False)

    def leave_out(self, example: Example, reason: str) -> None:
        self.rows_in += 1
        self._differ(example, reason, left_out=True)

    def _differ(self, example: Example, reason: str, *, left_out: bool) -> None:
        (self.left_out if left_out else self.noted)[reason] += 1
        row = example.row
        line = Difference(row.prompt_index, row.prompt_key, row.metadata.ordinal, left_out, reason)
        self._differences.write(ENCODER.encode(line) + b"\n")

    def finish(self, options: Options) -> Summary:
        """Write cards and summary."""
        close_durably(self._differences)
        splits = {"train": 0, **_sorted(self.splits)}
        counts = Counts(self.rows_in, splits, _sorted(self.left_out), _sorted(self.noted))
        self.writer.finish(counts)
        summary = Summary(
            self.writer.name,
            counts.rows_in,
            counts.rows_out,
            counts.splits,
            counts.left_out,
            counts.noted,
            options._asdict(),
        )
        encoded = msgspec.json.format(ENCODER.encode(summary), indent=2)
        write_atomic(self.writer.target.folder / "summary.json", encoded + b"\n")
        return summary


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))


def export(folder: RunFolder, names: list[str], options: Options) -> list[Summary]:
    """Write the exports `names` of a run; each folder is replaced as a whole, or stays as it was where a row is bad."""
    run, root = read_run(folder), folder.root / "exports"
    with ExitStack() as stack:
        exports = []
        for name in names:
            fresh = stack.enter_context(replacing_folder(root / name))
            exports.append(Export(FORMATS[name](Target(fresh, folder, run, options))))
        _feed(exports, _examples(folder.trajectories, run), Selection(options))
        summaries = [each.finish(options) for each in exports]
    lines = "\n".join(f"- `{writer.name}`: {writer.load}" for writer in FORMATS.values())
    write_atomic(root / "README.md", OVERVIEW.format(lines=lines).encode())
    return summaries


def _feed(exports: list[Export], examples: Iterator[Example], selection: Selection) -> None:
    for example in examples:
        try:
            taken = selection.take(example)
        except LeftOut as left:
            for each in exports:
                each.leave_out(example, left.reason)
            continue
        for each in exports:
            each.add(taken, selection.split(taken))


def _examples(path: Path, run: Run) -> Iterator[Example]:
    tools = ToolCatalogue(run)
    if not path.exists():
        raise UserError(f"{path} is missing; merge_trajectories makes it")
    for number, (_, line) in enumerate(row_lines(path), 1):
        try:
            row = TRAJECTORY.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{path} line {number} is damaged ({error}); merge the run again") from None
        yield example_of(row, tools.of(row.toolsets_used))
