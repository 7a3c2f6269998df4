# shellcheck shell=bash
# Source it after env.sh. Names every step, says how long it took, and bounds it in time.

STEPS_STARTED=$SECONDS
STEPS_PASSED=()
STEPS_FAILED=()
STEPS_SKIPPED=()

say() { printf '[%4ds] %s\n' $((SECONDS - STEPS_STARTED)) "$*" >&2; }

# bounded SECONDS COMMAND...   ends it after that time, where the machine has a command for that
bounded() {
    local limit=$1
    shift
    if ! command -v timeout > /dev/null; then
        "$@"
    elif [ -t 0 ]; then
        # At a terminal the command stays in our process group, so that Ctrl-C reaches it.
        timeout --foreground --kill-after=10 "$limit" "$@"
    else
        timeout --kill-after=10 "$limit" "$@"
    fi
}

# step NAME SECONDS COMMAND...   runs it, notes the outcome, returns it
step() {
    local name=$1 limit=$2 began=$SECONDS code=0
    shift 2
    say "== $name"
    if declare -F "$1" > /dev/null; then
        "$@" || code=$? # a function of the script, which bounds what it calls
    else
        bounded "$limit" "$@" || code=$?
    fi
    if [ $code = 0 ]; then
        STEPS_PASSED+=("$name")
        say "   $name: ok, $((SECONDS - began)) s"
    else
        STEPS_FAILED+=("$name")
        [ $code = 124 ] && say "   $name took longer than $limit s and was stopped"
        say "   $name: FAILED (exit code $code), $((SECONDS - began)) s"
    fi
    return $code
}

skip_step() {
    STEPS_SKIPPED+=("$1")
    say "== $1: skipped, $2"
}

# closing lines for people and for programs; the result is the exit code
steps_summary() {
    echo
    say "finished in $((SECONDS - STEPS_STARTED)) s"
    local name
    for name in "${STEPS_PASSED[@]+"${STEPS_PASSED[@]}"}"; do echo "  ok       $name"; done
    for name in "${STEPS_SKIPPED[@]+"${STEPS_SKIPPED[@]}"}"; do echo "  skipped  $name"; done
    for name in "${STEPS_FAILED[@]+"${STEPS_FAILED[@]}"}"; do echo "  FAILED   $name"; done
    echo
    echo "${#STEPS_PASSED[@]} passed, ${#STEPS_FAILED[@]} failed, ${#STEPS_SKIPPED[@]} skipped"
    [ ${#STEPS_FAILED[@]} = 0 ]
}
