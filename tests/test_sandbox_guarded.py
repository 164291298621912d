"""What comes of a guarded command through a stream, however it is cut into parts."""

import pytest
from trajectile.sandbox.guarded_command import ExecOutput
from trajectile.sandbox.output import Whole

SAID = b"\0go\n\0token\n\0token 17\ny\ny\n\0token 1\n"


@pytest.mark.parametrize("size", [*range(1, 12), len(SAID)])
def test_leftovers_that_print_on_change_neither_status_nor_output(size: int) -> None:
    kept = Whole(1000)
    output = ExecOutput("token", kept)
    for start in range(0, len(SAID), size):
        output.take(SAID[start : start + size])
        assert output.begun
        if output.status is not None:
            break
    assert output.status == 17 and kept.value() == b"go\n\0token\n"
