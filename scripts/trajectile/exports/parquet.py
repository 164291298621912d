"""The rows of trajectories.jsonl as Parquet shards with a fixed schema and a dataset card, ready for a hub."""

from typing import TYPE_CHECKING, Any

from trajectile.errors import UserError
from trajectile.exports.card import write_card
from trajectile.exports.example import Example
from trajectile.exports.format import Counts, Target, Writer
from trajectile.exports.parquet_card import body, read_numbers, size_category
from trajectile.exports.parquet_row import ParquetRow, parquet_row
from trajectile.exports.selection import TRAIN
from trajectile.results.card import struct_features

if TYPE_CHECKING:
    from trajectile.exports.parquet_file import SplitShards


class ParquetWriter(Writer):
    name = "parquet"
    load = 'Parquet shards with a dataset card, ready for a hub: `load_dataset("exports/parquet")`'

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.numbers = read_numbers(target.run_folder)
        try:
            from trajectile.exports import parquet_file
        except ImportError:
            raise UserError("the export parquet needs pyarrow: pip install pyarrow") from None
        self._files = parquet_file
        self._schema = parquet_file.arrow_schema(ParquetRow)
        self._shards: dict[str, SplitShards] = {}
        self._of(TRAIN)

    def _of(self, split: str) -> "SplitShards":
        if split not in self._shards:
            self._shards[split] = self._files.SplitShards(self.target.folder, split, self._schema)
        return self._shards[split]

    def add(self, example: Example, split: str) -> list[str]:
        self._of(split).write(parquet_row(example))
        return []

    def finish(self, counts: Counts) -> None:
        for shards in self._shards.values():
            shards.close()
        files = {split: f"{split}-*.parquet" for split in self._shards}
        head: dict[str, Any] = {
            "pretty_name": self.target.run.run_name,
            "task_categories": ["text-generation"],
            "tags": ["agent", "tool-use", "trajectories", "synthetic"],
            "size_categories": [size_category(counts.rows_out)],
        }
        text = body(self.target.run, self.numbers, counts)
        write_card(self.target.folder, files, struct_features(ParquetRow), text, **head)
