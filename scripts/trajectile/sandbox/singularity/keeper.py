"""The program that runs commands inside a container that has a shell, `cat` and `mkdir`, and perhaps nothing else."""

# Its argument is the working folder.
ENTRY = """! command -v bash >/dev/null || exec bash --noprofile --norc -c '. /run/sandbox/keeper' sandbox "$1"
. /run/sandbox/keeper"""

# Says `ready SHELL MARK`, the mark of what bears none. Takes `N MARK` a line, finds the files N.script, N.out and, with
# input, N.in in guard.STATE, says `begin N 0` once the command bears its mark (marks.py), and `exit N STATUS`. It ends
# with its input, that is, with its owner.
# `set -m` and `setsid` give a command a process group of its own, so that `kill 0` in it does not end its keeper.
KEEPER = r"""
command -p rm -f /run/sandbox/keeper
printf sandbox >/proc/self/comm
command -p mkdir -p -- "$HOME" "${1:-/}"
[ -w "$HOME" ] || export HOME=/tmp
cd -- "${1:-$HOME}" || exit
unset OLDPWD PS1 PROMPT_COMMAND
for name in APPNAME BIND COMMAND CONTAINER ENVIRONMENT NAME; do unset "APPTAINER_$name" "SINGULARITY_$name"; done
[ "${LD_LIBRARY_PATH-}" != /.singularity.d/libs ] || unset LD_LIBRARY_PATH
[ "${LANG:-C}" != C ] || export LANG=C.UTF-8
export TERM=dumb PAGER=cat
if [ "${BASH_VERSION-}" ]; then shell=bash run='bash --noprofile --norc'; else shell=sh run='setsid sh'; fi
[ $shell = bash ] || command -v setsid >/dev/null || run=sh
read -r mark </proc/self/oom_score_adj
trap '' INT TERM HUP QUIT
exec 3<&0 4>&1 </dev/null
echo "ready $shell $mark" >&4
while read -r n mark <&3; do
    input=/run/sandbox/$n.in
    [ -p "$input" ] || input=/dev/null
    {
        exec 3<&-
        [ $shell = sh ] || set -m
        {
            trap - INT TERM HUP QUIT
            echo "$mark" >/proc/self/oom_score_adj
            script=$(command -p cat "/run/sandbox/$n.script")
            echo "begin $n 0" >&4
            exec $run -c "$script" 4>&-
        } <"$input" >"/run/sandbox/$n.out" 2>&1 &
        [ $shell = sh ] || set +m
        wait $!
        echo "exit $n $?" >&4
    } &
done
"""
