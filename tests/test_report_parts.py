import math
import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trajectile.report.axes import logarithmic, over_time, summed_up, whole_numbers
from trajectile.report.histogram import Histogram
from trajectile.report.numbers import counted, linear_ticks, log_ticks, nice_step, short
from trajectile.report.timeline import DAY, SLOT_S, Timeline, clock, span_of


def histogram(values):
    made = Histogram()
    for value in values:
        made.add(value)
    return made


@given(st.lists(st.floats(min_value=1e-9, max_value=1e12), min_size=1, max_size=50))
def test_bins_hold_every_value_once_and_are_few(values):
    bins = histogram(values).bins(most=32)
    assert sum(b.values for b in bins) == len(values) and len(bins) <= 32
    assert bins[0].low <= min(values) * 1.0001 and bins[-1].high >= max(values) * 0.9999
    assert all(a.high == pytest.approx(b.low) for a, b in pairwise(bins))


def test_quantiles_are_known_to_the_width_of_a_bin():
    chance = random.Random(5)
    values = [chance.lognormvariate(3, 1) for _ in range(5000)]
    made = histogram(values)
    for fraction in (0.1, 0.5, 0.9, 0.99):
        assert made.quantile(fraction) == pytest.approx(np.quantile(values, fraction), rel=0.06)


def test_values_that_are_not_positive_count_but_have_no_bin():
    made = histogram([0, 0, 0, 5.0])
    assert (len(made), made.zeros, made.total) == (4, 3, 5.0)
    assert made.quantile(0.5) == 0 and made.quantile(0.99) == pytest.approx(5, rel=0.06)
    assert sum(b.values for b in made.bins()) == 1
    assert Histogram().bins() == [] and Histogram().quantile(0.5) == 0


def test_a_timeline_keeps_every_amount_whatever_the_length_of_the_run():
    for seconds in (5, 900, 90_000, 40 * DAY):
        line = Timeline()
        for n in range(100):
            line.add(f"2026-11-{1 + n * seconds // 100 // DAY % 28:02}T10:00:00+00:00", "a" if n % 4 else "b", 2)
        span = span_of(line.slots())
        assert sum(line.sums("a", span)) == 150 and sum(line.sums("b", span)) == 50
        assert len(line.sums("a", span)) <= 48 and line.kinds() == ["a", "b"]


def test_a_timeline_passes_over_what_is_no_time():
    line = Timeline()
    line.add("yesterday")
    assert line.slots() == set() and sum(line.sums("", span_of(set()))) == 0


def test_time_is_read_with_its_zone_and_written_in_utc():
    line = Timeline()
    line.add("2026-11-29T18:10:05.5+02:00")
    [slot] = line.slots()
    assert slot % SLOT_S == 0 and clock(slot, 60) == "Nov 29 16:10" and clock(slot, 1) == "16:10:00"


def test_columns_that_rise_hold_all_before_them():
    line = Timeline()
    for minute in range(10):
        line.add(f"2026-11-29T18:{minute:02}:00+00:00", amount=minute)
    panel = over_time("t", line, [[""]], span_of(line.slots()))
    assert [c.parts[0] for c in summed_up(panel).columns][-1] == 45 == sum(c.parts[0] for c in panel.columns)


@given(st.dictionaries(st.integers(0, 5000), st.integers(1, 9), min_size=1))
def test_whole_numbers_are_all_drawn_within_the_axis(counts):
    panel = whole_numbers("t", Counter(counts))
    assert sum(c.parts[0] for c in panel.columns) == sum(counts.values())
    assert len(panel.columns) <= 120 and len(panel.ticks) <= 12
    assert all(0 <= c.left < c.right <= 1 + 1e-9 for c in panel.columns)


def test_marks_lie_where_their_value_is():
    panel = logarithmic("t", histogram([1.0] * 50 + [100.0] * 50 + [10_000.0] * 5), "s")
    places = {label: place for place, label in panel.ticks}
    assert places["10"] < places["1k"] and all(0 <= place <= 1 for place in places.values())
    assert [label.split()[0] for _, label in panel.marks] == ["median", "p99"]


def test_numbers_are_short_and_ticks_are_round():
    assert [short(v) for v in (0, 0.0012, 3.456, 120, 4200, 1.5e6, -2500)] == [
        *("0", "0.0012", "3.46", "120", "4.2k", "1.5M", "-2.5k"),
    ]
    assert [counted(1, "turn"), counted(2000, "turn"), counted(2, "entry", "entries")] == [
        *("1 turn", "2,000 turns", "2 entries"),
    ]
    assert linear_ticks(7) == [0, 2, 4, 6, 8] and linear_ticks(0) == [0, 1]
    assert nice_step(0.03) == pytest.approx(0.05) and nice_step(11) == 20


@given(st.floats(1e-6, 1e6), st.floats(1.01, 1e9))
def test_ticks_of_a_logarithmic_axis_are_few_and_inside(low, factor):
    ticks = log_ticks(low, low * factor)
    assert len(ticks) <= 10 and all(low <= tick <= low * factor * 1.001 for tick in ticks)
    assert ticks or math.log10(factor) < 1
