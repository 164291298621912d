"""A folder that holds a small Linux system: bash, the usual programs, the libraries they load."""

import re
import shutil
import subprocess
from pathlib import Path

PROGRAMS = [
    "bash",
    "sh",
    "cat",
    "head",
    "tail",
    "mv",
    "rm",
    "cp",
    "ls",
    "ln",
    "mkdir",
    "rmdir",
    "sleep",
    "env",
    "touch",
]
PROGRAMS += ["chmod", "id", "tr", "seq", "wc", "sort", "cut", "dd", "stat", "yes", "truncate", "true", "grep", "ps"]
PROGRAMS += ["setsid", "nohup", "kill", "uname", "sed"]
FOLDERS = ("bin", "dev", "etc", "home", "lib", "lib64", "proc", "root", "sys", "tmp", "usr", "var/tmp", "work")


def make(folder: Path, mark: str = "", programs: "list[str]" = PROGRAMS) -> Path:
    """Fill `folder`; /etc/mark holds `mark`."""
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (folder / "etc/group").write_text("root:x:0:\n")
    (folder / "etc/mark").write_text(f"{mark}\n")
    for program in programs:
        found = Path(shutil.which(program) or f"no {program}").resolve(strict=True)
        shutil.copy(found, folder / "bin" / program)
        for library in re.findall(r"/\S+", _needs(found)):
            (folder / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, folder / library[1:])
    return folder


def _needs(program: Path) -> str:
    return subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
