"""The plan decides by content alone; a machine of random runs, kills and edits holds it to its promises."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from trajectile.planning.inventory import Inventory, ShardFiles
from trajectile.planning.plan import Plan, Shard, make_plan, missing_rows
from trajectile.run_folder.ids import KEY_BYTES, Id, Ids, make_id


def key_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def rows(texts: Iterable[str]) -> list[Id]:
    """The ids of a dataset: equal texts are told apart by their ordinal."""
    seen: Counter[str] = Counter()
    made = []
    for text in texts:
        made.append(make_id(key_of(text), seen[text]))
        seen[text] += 1
    return made


def plan(
    dataset: str | list[Id],
    *shards: ShardFiles,
    highest: int | None = None,
    failed: dict[Id, int] | None = None,
    batch_size: int = 2,
    max_attempts: int | None = None,
) -> Plan:
    ids = rows(dataset) if isinstance(dataset, str) else dataset
    top = max((shard.number for shard in shards), default=-1) if highest is None else highest
    inventory = Inventory(Ids(ids, "d"), list(shards), top)
    return make_plan(inventory, Counter(failed or {}), batch_size=batch_size, max_attempts=max_attempts)


def cut(made: Plan) -> list[tuple[int, list[Id], bool]]:
    return [(shard.number, shard.rows, shard.new) for shard in made.shards]


A, B, C, D, E = rows("abcde")
S0, S1, S2 = rows("sss")


def test_a_new_dataset_is_cut_in_its_order() -> None:
    made = plan("abcde")
    assert cut(made) == [(0, [A, B], True), (1, [C, D], True), (2, [E], True)]
    assert (made.prompts, made.owed, made.batches) == (5, [A, B, C, D, E], [0, 1, 2])
    assert [shard.reason for shard in made.shards] == ["new: 2 to run", "new: 2 to run", "new: 1 to run"]


def test_an_empty_dataset_and_a_finished_one_need_nothing() -> None:
    assert plan("").shards == []
    finished = plan("ab", ShardFiles(0, None, None, [A, B]))
    assert (finished.shards, finished.owed, finished.batches) == ([], [], [0])


def test_equal_prompts_keep_their_multiplicity() -> None:
    made = plan("sxss", ShardFiles(0, [S0, S1, S2], [S1], None))
    assert len(made.owed) == 3 and S1 not in made.owed


def test_of_equal_rows_it_does_not_matter_which_one_is_finished() -> None:
    assert plan("s", ShardFiles(0, None, None, [S2])).owed == []
    assert plan("ss", ShardFiles(0, None, None, [S2])).owed == [S1]
    assert plan("ss", ShardFiles(0, None, None, [S0]), ShardFiles(1, None, None, [S0])).owed == []


def test_rows_put_in_front_are_all_that_runs() -> None:
    made = plan("deabc", ShardFiles(0, None, None, [A, B]), ShardFiles(1, None, None, [C]))
    assert cut(made) == [(2, [D, E], True)]


def test_another_dataset_is_all_owed_and_the_rows_that_left_it_are_not_mixed_in() -> None:
    made = plan("de", ShardFiles(0, None, None, [A, B]))
    assert cut(made) == [(1, [D, E], True)] and made.batches == [0, 1]


def test_a_begun_shard_keeps_its_number_at_another_batch_size() -> None:
    made = plan("abcde", ShardFiles(3, [A, B, C], [B], None), batch_size=1)
    assert cut(made) == [(3, [A, C], False), (4, [D], True), (5, [E], True)]
    assert made.shards[0].reason == "never finished: 1 rows in its journal, 2 to run"


def test_a_finished_journal_without_batch_file_costs_no_call() -> None:
    made = plan("ab", ShardFiles(0, [A, B], [A, B], None))
    assert cut(made) == [(0, [], False)] and made.owed == []


def test_a_journal_of_rows_that_left_the_dataset_still_goes_into_its_batch() -> None:
    made = plan("b", ShardFiles(0, [A, B], [A], None))
    assert cut(made) == [(0, [B], False)]
    made = plan("", ShardFiles(0, [A, B], [A], None))
    assert cut(made) == [(0, [], False)] and made.shards[0].withdrawn == [B]


def test_a_journal_with_nothing_in_it_keeps_its_shard_while_rows_are_owed() -> None:
    assert cut(plan("ab", ShardFiles(0, [A, B], [], None))) == [(0, [A, B], False)]
    assert plan("c", ShardFiles(0, [A, B], [], None)).shards[0].new


def test_a_shard_that_never_began_keeps_the_rows_that_are_still_owed() -> None:
    assert cut(plan("abc", ShardFiles(5, [B, A], None, None))) == [(5, [B, A], False), (6, [C], True)]
    made = plan("ac", ShardFiles(5, [B, A], None, None))
    assert cut(made) == [(5, [A], False), (6, [C], True)] and made.shards[0].withdrawn == [B]


def test_failed_rows_of_a_batch_that_is_written_are_cut_into_a_new_shard() -> None:
    made = plan("ab", ShardFiles(0, None, None, [A]), failed={B: 2})
    assert cut(made) == [(1, [B], True)] and made.shards[0].failed == {B: 2}
    assert made.shards[0].reason == "new: 1 to run, 1 of them failed before (2 times at most)"


def test_a_batch_file_that_lacks_rows_of_its_journal_is_made_again() -> None:
    made = plan("abc", ShardFiles(0, [A, B, C], [A, B], [A]))
    assert cut(made) == [(0, [C], False)]
    assert made.shards[0].reason == "batch file damaged: 2 rows in its journal, 1 to run"
    assert plan("abc", ShardFiles(0, [A, B, C], [A, B], [B, A, C])).shards == []


def test_a_lost_batch_file_is_named() -> None:
    made = plan("ab", ShardFiles(0, [A, B], None, None, batch_lost=True))
    assert made.shards[0].reason == "batch file is gone: 2 to run"


def test_rows_that_failed_often_enough_are_given_up_and_nobody_elses() -> None:
    made = plan("abc", failed={A: 3, B: 2}, max_attempts=3)
    assert (made.given_up, made.owed) == ([A], [B, C])
    assert plan("abc", failed={A: 99}).given_up == []
    kept = plan("ab", ShardFiles(0, [A, B], None, None), failed={A: 3}, max_attempts=3)
    assert cut(kept) == [(0, [B], False)] and kept.shards[0].withdrawn == [A]


def test_numbers_go_on_after_the_highest_ever_used() -> None:
    assert cut(plan("a", highest=41)) == [(42, [A], True)]


def test_digests_name_the_work_and_the_results() -> None:
    first = plan("abc")
    assert first.digest == plan("abc").digest
    assert len({first.digest, plan("abd").digest, plan("acb").digest, plan("abc", batch_size=3).digest}) == 4
    done = plan("abc", ShardFiles(0, None, None, [A, B]), ShardFiles(1, None, None, [C]))
    assert done.results_digest == first.results_digest and done.digest != first.digest
    assert plan("abc", ShardFiles(0, None, None, [A, B])).results_digest == first.results_digest


@dataclass
class Files:
    """The files of one shard, as they lie on disk."""

    given: list[Id]
    journal: list[Id] | None = None
    batch: list[Id] | None = None
    had_batch: bool = False


class Machine(RuleBasedStateMachine):
    """Runs, kills, losses and edits at random; after each of them the plan must be right."""

    @initialize(texts=st.text("abcd", max_size=8))
    def begin(self, texts: str) -> None:
        self.dataset = rows(texts)
        self.files: dict[int, Files] = {}
        self.failed: Counter[Id] = Counter()
        self.highest = -1
        self.batch_size = 3

    @rule(texts=st.text("abcd", max_size=8), size=st.integers(1, 4))
    def edit_the_dataset(self, texts: str, size: int) -> None:
        self.dataset, self.batch_size = rows(texts), size

    @rule(data=st.data())
    def run_some_shards(self, data: st.DataObject) -> None:
        """Split, then run shards in any order; each finishes, is killed on the way, or never begins."""
        made = self.made()
        for shard in made.shards:
            if shard.new:
                self.files[shard.number] = Files(shard.rows)
            elif (files := self.files[shard.number]).batch is not None:
                files.journal = list(dict.fromkeys([*files.batch, *(files.journal or ())]))
        self.highest = max(self.highest, *(shard.number for shard in made.shards), -1)
        for shard in data.draw(st.permutations(made.shards)):
            how = data.draw(st.sampled_from(["finished", "killed", "waiting"]))
            if how != "waiting":
                self.work_on(shard, data.draw(st.sets(st.sampled_from(shard.rows)) if shard.rows else st.just(set())))
            if how == "finished":
                self.finish(self.files[shard.number])

    def work_on(self, shard: Shard, lucky: set[Id]) -> None:
        files = self.files[shard.number]
        finished = {*(files.journal or ()), *(files.batch or ())}
        ran = [row for row in files.given if row not in finished and row not in shard.withdrawn]
        assert sorted(ran) == sorted(shard.rows), "a shard must run what the plan said"
        files.journal = [*(files.journal or ()), *(row for row in ran if row in lucky)]
        self.failed.update(row for row in ran if row not in lucky)

    def finish(self, files: Files) -> None:
        files.batch = list(dict.fromkeys([*(files.batch or ()), *(files.journal or ())]))
        files.had_batch = True

    @rule(data=st.data())
    def lose_something(self, data: st.DataObject) -> None:
        if not self.files:
            return
        files = self.files[data.draw(st.sampled_from(sorted(self.files)))]
        match data.draw(st.sampled_from(["batch", "journal", "last of batch", "last of journal", "second copy"])):
            case "batch":
                files.batch = None
            case "journal" if files.batch is not None and set(files.journal or ()) <= set(files.batch):
                files.journal = None
            case "last of batch":
                files.batch = files.batch and files.batch[:-1]
            case "last of journal":
                files.journal = files.journal and files.journal[:-1]
            case "second copy":
                files.batch = files.batch and [*files.batch, files.batch[0]]

    def inventory(self) -> Inventory:
        shards = [
            ShardFiles(number, f.given, f.journal, f.batch, f.batch is None and f.had_batch)
            for number, f in sorted(self.files.items())
        ]
        return Inventory(Ids(self.dataset, "d"), shards, self.highest)

    def made(self) -> Plan:
        return make_plan(self.inventory(), self.failed, batch_size=self.batch_size)

    @invariant()
    def each_owed_row_runs_exactly_once(self) -> None:
        made = self.made()
        planned = [row for shard in made.shards for row in shard.rows]
        assert Counter(planned) == Counter(made.owed) and set(made.owed) <= set(self.dataset)
        assert len(made.owed) == len(set(made.owed)) and made.owed == missing_rows(self.inventory())

    @invariant()
    def as_many_are_owed_as_are_wanted_and_not_finished(self) -> None:
        finished = Counter(row[:KEY_BYTES] for shard in self.inventory().shards for row in shard.finished)
        wanted = Counter(row[:KEY_BYTES] for row in self.dataset)
        assert Counter(row[:KEY_BYTES] for row in self.made().owed) == wanted - finished

    @invariant()
    def begun_shards_keep_number_and_rows(self) -> None:
        made = self.made()
        kept = {shard.number: shard for shard in made.shards if not shard.new}
        place = {row: shard.number for shard in made.shards for row in shard.rows}
        for number, files in self.files.items():
            owed = [row for row in files.given if row in place]
            if set(files.journal or ()) - set(files.batch or ()):
                assert number in kept, "journalled rows must reach a batch file"
            if files.batch is None:
                assert {place[row] for row in owed} <= {number} or self.shared(files)

    def shared(self, files: Files) -> bool:
        """Whether another shard was given one of these rows too, which a lost batch file or an edit brings about."""
        others = [row for other in self.files.values() if other is not files for row in other.given]
        return bool(set(others) & set(files.given))

    @invariant()
    def new_shards_are_full_and_numbered_after_all_others(self) -> None:
        new = [shard for shard in self.made().shards if shard.new]
        assert [shard.number for shard in new] == list(range(self.highest + 1, self.highest + 1 + len(new)))
        assert all(len(shard.rows) == self.batch_size for shard in new[:-1])
        assert all(0 < len(shard.rows) <= self.batch_size for shard in new)

    @invariant()
    def every_row_of_a_kept_shard_is_run_withdrawn_or_finished(self) -> None:
        for shard in self.made().shards:
            if shard.new:
                continue
            files = self.files[shard.number]
            over = {*(files.journal or ()), *(files.batch or ())}
            assert set(shard.withdrawn).isdisjoint({*shard.rows, *over})
            assert set(files.given) <= {*shard.rows, *shard.withdrawn, *over}

    @invariant()
    def a_plan_is_the_same_twice_and_comes_to_an_end(self) -> None:
        assert self.made() == self.made()
        assert set(self.made().batches) >= {n for n, files in self.files.items() if files.batch is not None}


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=80, stateful_step_count=12, deadline=None, database=None)
