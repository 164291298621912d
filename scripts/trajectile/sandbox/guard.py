"""The programs that run inside a container: its first process, and what stands around each command.

They are written for any POSIX shell and use nothing that an image may lack but `mkdir` and `cat`.
marks.py says how they know a command.
"""

STATE = "/run/sandbox"
SAYS_READY, SAYS_KILLED, SAYS_NO_FOLDER = "ready", "killed", "nofolder"

# Argument: the folder that commands begin in. Says `ready SHELL SETSID MARK` (the mark of what bears none), then takes
# `N` a line and says `killed N` when nothing with the mark N, and nothing below such a process, is left. The container
# ends with its input, that is, with its owner. The first process is out of the commands' reach and takes in what they
# leave; the one that it waits for is not, and is made anew.
# Stopped first, killed then: what forks faster than it is killed would get away.
GUARD = r"""
if [ "$1" ] && ! { mkdir -p -- "$1" && cd -- "$1"; } 2>/dev/null; then echo nofolder; exit; fi
shell=sh setsid=
! command -v bash >/dev/null || shell=bash
! command -v setsid >/dev/null || setsid=setsid
read -r mark </proc/self/oom_score_adj
echo "ready $shell ${setsid:--} $mark"
exec 2>/dev/null
find_marked() {
    found=' ' more=1
    while [ "$more" ]; do
        more=
        for entry in /proc/[0-9]*; do
            pid=${entry#/proc/}
            case $found in *" $pid "*) continue ;; esac
            read -r score <"$entry/oom_score_adj" && read -r stat <"$entry/stat" || continue
            set -- ${stat##*) }
            case $1${18} in Z[01] | X*) continue ;; esac
            case $score,$found in "$mark,"* | *" $2 "*) found="$found$pid " more=1 ;; esac
        done
    done
}
while :; do
    (
        while read -r mark; do
            stopped=
            while find_marked; [ "$found" != ' ' ]; do
                if [ "$found" = "$stopped" ]; then kill -9 $found; else kill -STOP $found; fi
                stopped=$found
            done
            echo "killed $mark"
        done
        exit 0
    ) && exit
done
"""

# Arguments: mark, token, folder, shell, script. Prints NUL, what the script prints, NUL, token, space, status, newline.
# `cat` lives until nothing holds the other end of its pipe, so that leftovers may print on after the command's end.
LAUNCH = r"""
echo "$1" >/proc/self/oom_score_adj && printf '\0' || exit
[ -z "$3" ] || cd -- "$3" || exit
[ -w "$HOME" ] || export HOME=/tmp
export LANG="${LANG:-C.UTF-8}" TERM=dumb PAGER=cat
{ SETSID "$4" OPTIONS -c "$5" INPUT 2>&1; printf '\0%s %s\n' "$2" "$?"; } | cat
"""


def launch(*, setsid: str, shell: str, stdin: bool) -> str:
    """Return the text of LAUNCH for a container that has `shell` and perhaps `setsid`."""
    options = "--noprofile --norc" if shell == "bash" else ""
    given = {"SETSID": setsid, "OPTIONS": options, "INPUT": "" if stdin else "</dev/null"}
    text = LAUNCH
    for name, value in given.items():
        text = text.replace(name, value)
    return text
