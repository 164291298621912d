"""Files: bytes in, the same bytes out, errors as open() has them."""

import os

import pytest
from trajectile.sandbox.base import Sandbox

from sandbox_contract.subjects import Subject, said


def test_files_are_bytes_and_errors_are_those_of_open(subject: Subject) -> None:
    data = bytes(range(256)) * 1000
    name = "-odd 'na\nme\" $(x)*"

    async def test(sandbox: Sandbox) -> None:
        await sandbox.exec("mkdir -p ~/d; cd ~/d; ln -s nowhere/at/all broken", timeout_s=60)
        await sandbox.write_file(name, data)
        for path in (name, f"../d/{name}", f"~/d/{name}"):
            assert await sandbox.read_file(path) == data
        await sandbox.write_file("empty", b"")
        assert await sandbox.read_file("empty") == b""
        for path, kind in {".": IsADirectoryError, "empty/x": NotADirectoryError, "broken": FileNotFoundError}.items():
            with pytest.raises(kind):
                await sandbox.read_file(path)
            with pytest.raises(kind):
                await sandbox.write_file(path, b"")
        with pytest.raises(FileNotFoundError):
            await sandbox.write_file("nope/x", b"")
        with pytest.raises(ValueError, match="NUL"):
            await sandbox.read_file("a\0b")

    subject.run(test)


def test_large_files(subject: Subject) -> None:
    async def test(sandbox: Sandbox) -> None:
        large = os.urandom(1 << 20) * 50
        await sandbox.write_file("large", large)
        assert await sandbox.read_file("large") == large
        await sandbox.exec("truncate -s 65M huge", timeout_s=60)
        with pytest.raises(OSError, match="larger than 64 MB"):
            await sandbox.read_file("huge")
        assert await said(sandbox, "echo on") == "on\n"

    subject.run(test)
