"""The wrapping of a command for a shell that is not bash, such as busybox's: exported functions do not last there."""

import shlex

# Sets the folder and the variables that the last command left; before the first one, notes what a fresh shell has.
RESTORE = (
    "{ if [ -f STATE ]; then while read -r _name; do unset $_name; done <FIRST; . STATE; "
    'cd -- "$_cwd" || cd; OLDPWD=$_oldcwd; unset _name _cwd _oldcwd; '
    "else env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p' >|FIRST; fi; } >/dev/null 2>&1; "
)
SAVE = (
    "{ ( _cwd=$PWD; _oldcwd=${OLDPWD-}; export _cwd _oldcwd; export -p >|STATE.$$ ) "
    "&& command -p mv -f -- STATE.$$ STATE; } 2>/dev/null || :"
)


def wrap(command: str, state_dir: str, *, persist: bool) -> str:
    """As shell.wrap, for any POSIX shell."""
    state, first = shlex.quote(f"{state_dir}/state"), shlex.quote(f"{state_dir}/first")
    restore, save = (text.replace("STATE", state).replace("FIRST", first) for text in (RESTORE, SAVE))
    if not persist:
        return f"{restore}eval {shlex.quote(command)}"
    trap = f'[ "${{_saved-}}" ] || {save}'
    return (
        f"trap {shlex.quote(trap)} EXIT; {restore}eval {shlex.quote(command)}\n"
        f"_status=$?; {save}; _saved=1; exit $_status"
    )
