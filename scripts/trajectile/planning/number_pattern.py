"""A short regular expression for a set of numbers: Snakemake copies it into every file name that it forms."""

from collections import defaultdict
from collections.abc import Collection


def number_pattern(numbers: Collection[int]) -> str:
    """Return an expression that matches these numbers alone; numbers in a row need few characters, none match none."""
    return _any_of([str(number) for number in numbers]) if numbers else "(?!)"


def _any_of(texts: list[str]) -> str:
    """Match one of `texts`, each there once: those that begin alike share what follows."""
    tails: defaultdict[str, list[str]] = defaultdict(list)
    for text in texts:
        tails[text[:1]].append(text[1:])
    heads: defaultdict[str, str] = defaultdict(str)
    for head in sorted(tails.keys() - {""}):
        heads[_any_of(tails[head])] += head
    choices = [f"[{head}]{tail}" for tail, head in heads.items()]
    choices += [""] if "" in tails else []
    return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"
