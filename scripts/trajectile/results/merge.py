"""Puts the finished rows into the order of the dataset."""

from array import array
from collections.abc import Iterator
from itertools import zip_longest
from typing import BinaryIO, NamedTuple

from trajectile.errors import UserError
from trajectile.results.command import Dataset
from trajectile.results.discarded import DiscardedRows
from trajectile.results.matching import Matcher, Matching
from trajectile.results.merged_row import MERGED_ROW, MergedRow
from trajectile.results.sources import FinishedRows, PlaceReader
from trajectile.results.tool_names import ToolNames
from trajectile.rows import SUPERSEDED, ToolStat
from trajectile.run_folder.journal import ENCODER
from trajectile.run_folder.paths import RunFolder

CHANGED = "the dataset changed while its rows were put in order. Run again."


class Merged(NamedTuple):
    """Row counts of a merge: `lacking` prompts have no row, `superseded` rows no prompt."""

    written: int
    discarded: int
    superseded: int
    lacking: int


class Scan(NamedTuple):
    """The finished rows without their content; the four sequences are parallel, in reading order."""

    rows: FinishedRows
    places: "array[int]"
    lengths: "array[int]"
    discarded: bytearray
    names: list[str]
    matching: Matching


def scan(folder: RunFolder, dataset: Dataset, offered: list[str]) -> Scan:
    """Read all finished rows once: where each lies, whether it is discarded, which prompt it belongs to."""
    matcher = Matcher(prompt.prompt_key for prompt in dataset.prompts())
    discarded, tools = DiscardedRows(folder), ToolNames(offered)
    places, lengths, flags = array("q"), array("I"), bytearray()
    for row, place, length in discarded.rows:
        matcher.add(row.prompt_key, row.metadata.ordinal)
        places.append(place)
        lengths.append(length)
        flags.append(discarded.takes(place))
        if not flags[-1]:
            tools.add(row)
    discarded.finish()
    return Scan(discarded.rows, places, lengths, flags, tools.sorted(), matcher.match())


def merge(scanned: Scan, dataset: Dataset, out: BinaryIO, *, keep_superseded: bool) -> Merged:
    """Write the rows that are not discarded in dataset order, and after them, if kept, those that no prompt takes."""
    no_calls, no_errors = dict.fromkeys(scanned.names, ToolStat()), dict.fromkeys(scanned.names, 0)
    written, line = 0, bytearray()
    with PlaceReader(scanned.rows.files) as reader:
        for row in _ordered(scanned, dataset, reader, keep_superseded):
            row.tool_stats, row.tool_error_counts = no_calls | row.tool_stats, no_errors | row.tool_error_counts
            ENCODER.encode_into(row, line)
            line += b"\n"
            out.write(line)
            written += 1
    row_of_prompt, superseded = scanned.matching
    return Merged(written, sum(scanned.discarded), len(superseded), int((row_of_prompt < 0).sum()))


def _ordered(scanned: Scan, dataset: Dataset, reader: PlaceReader, keep_superseded: bool) -> Iterator[MergedRow]:
    for prompt, number in zip_longest(dataset.prompts(), scanned.matching.row_of_prompt):
        if prompt is None or number is None:
            raise UserError(CHANGED)
        if number >= 0 and not scanned.discarded[number]:
            row = _read(scanned, reader, number)
            if row.prompt_key != prompt.prompt_key:
                raise UserError(CHANGED)
            row.prompt_index, row.source = prompt.prompt_index, prompt.source
            yield row
    for number in scanned.matching.superseded if keep_superseded else ():
        if not scanned.discarded[number]:
            row = _read(scanned, reader, number)
            row.prompt_index = SUPERSEDED
            yield row


def _read(scanned: Scan, reader: PlaceReader, number: int) -> MergedRow:
    return MERGED_ROW.decode(reader.read(scanned.places[number], scanned.lengths[number]))
