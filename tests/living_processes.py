"""Which of a process's children live: not those that ended and wait for their parent to ask how."""

import psutil


def processes_below(pid: int, word: str = "") -> list[psutil.Process]:
    """All living processes that a process has started, and theirs; with `word` as an argument of theirs."""
    return [each for each in psutil.Process(pid).children(recursive=True) if lives(each, word)]


def lives(process: psutil.Process, word: str = "") -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and (not word or word in process.cmdline())
    except psutil.Error:
        return False
