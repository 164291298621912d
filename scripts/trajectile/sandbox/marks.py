"""Marks, by which the commands in a container are told apart.

A mark is a value of oom_score_adj: what a command starts inherits it, through double forks, new sessions and cleared
environments, and raising it takes no right. It also makes the kernel choose commands when memory runs out.
"""

from collections.abc import Container

LARGEST_MARK = 1000


class Marks:
    """Hands out marks above `lowest`, which is borne by what is no command."""

    def __init__(self) -> None:
        self._lowest = self._last = 0

    def begin_above(self, lowest: int) -> None:
        self._lowest = self._last = lowest

    def next(self, borne: Container[int]) -> int:
        """Return a mark that is not among those still `borne`."""
        while True:
            self._last = self._last + 1 if self._last < LARGEST_MARK else self._lowest + 1
            if self._last not in borne:
                return self._last
