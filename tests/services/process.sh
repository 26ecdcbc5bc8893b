# shellcheck shell=bash
# Starting, watching and ending one background process whose directory holds everything about it. Sourced by `kafka` and `connect`.
#
# DIR/pid       "<pid> <start time>": the start time (field 22 of /proc/PID/stat) tells the process from a later one with the same number
# DIR/command   the command line, one argument a line, so that `restart` runs the same again
# DIR/owner     the pid given as --owner, if any
# DIR/temporary present when the script made DIR itself; `stop` then removes DIR
#
# Left out: anything but Linux.

READY_SECONDS_MAX=${ONCEWIRE_READY_SECONDS_MAX:-120}
STOP_SECONDS_MAX=${ONCEWIRE_STOP_SECONDS_MAX:-30}
PORT_MIN=20000 # below the range from which Linux takes outgoing ports, so that a port survives a kill and a restart
PORT_COUNT=12000

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

process_start_time() { # PID → field 22, counted after the command name, which may hold blanks
    local stat
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    local -a field
    read -ra field <<<"${stat##*) }"
    # After a SIGKILL the first thread may be a zombie already while others still hold the sockets.
    [[ ${field[0]} != Z || ${field[17]} -gt 1 ]] && echo "${field[19]}"
}

process_pid() { # DIR → the pid, if that very process is alive
    local pid started
    read -r pid started 2>/dev/null <"$1/pid" || return 1
    [[ $(process_start_time "$pid") == "$started" ]] && echo "$pid"
}

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free_port() {
    local attempt port
    for attempt in {1..50}; do
        port=$((PORT_MIN + (RANDOM * 32768 + RANDOM) % PORT_COUNT))
        port_is_free "$port" && echo "$port" && return
    done
    fail "found no free port on 127.0.0.1 in $attempt tries"
}

# Runs DIR/command in the background with its output appended to LOG, and waits until READY (a command given the log's new part on
# standard input) succeeds. Returns 1 when the process ended before it was ready, with the log's first errors on standard error.
process_launch() { # DIR LOG READY
    local dir=$1 log=$2 ready=$3 pid command
    mapfile -t command <"$dir/command"
    touch "$log"
    local seen=$(($(stat -c %s "$log") + 1))
    # A session of its own: Ctrl-C in a terminal reaches the tests, which then end the process in order.
    setsid "${command[@]}" >>"$log" 2>&1 </dev/null &
    pid=$!
    echo "$pid $(process_start_time "$pid")" >"$dir/pid"
    local deadline=$((SECONDS + READY_SECONDS_MAX))
    until tail -c "+$seen" "$log" | "$ready"; do
        if ! process_pid "$dir" >/dev/null; then
            tail -c "+$seen" "$log" | { grep -E 'ERROR|FATAL|Exception' || true; } | head -n 5 >&2
            return 1
        fi
        if ((SECONDS >= deadline)); then
            process_kill "$dir"
            fail "not ready within $READY_SECONDS_MAX s; see $log"
        fi
        sleep 0.05
    done
}

process_kill() { # DIR: SIGKILL, and wait until the kernel has let go of the process
    local pid
    pid=$(process_pid "$1") || return 0
    kill -KILL "$pid"
    process_wait_gone "$1" 10 || fail "pid $pid is still there 10 s after SIGKILL"
}

process_end() { # DIR: SIGTERM, then SIGKILL after STOP_SECONDS_MAX
    local pid
    pid=$(process_pid "$1") || return 0
    kill -TERM "$pid"
    process_wait_gone "$1" "$STOP_SECONDS_MAX" || process_kill "$1"
}

process_stop() { # DIR: ends the process and what belongs to it
    process_end "$1"
    rm -f "$1/pid"
    [[ ! -e $1/temporary ]] || rm -rf "$1"
}

process_wait_gone() { # DIR SECONDS
    local deadline=$((SECONDS + $2))
    while process_pid "$1" >/dev/null; do
        ((SECONDS < deadline)) || return 1
        sleep 0.05
    done
}

# Ends the process of DIR when the process named in DIR/owner is gone: a test that is itself killed leaves no server behind.
process_follow_owner() { # DIR
    local dir=$1 owner owner_started mine
    owner=$(<"$dir/owner")
    owner_started=$(process_start_time "$owner") || { process_kill "$dir" && fail "--owner $owner: no such process"; }
    mine=$(<"$dir/pid")
    (
        # A signal for the whole group of the test's processes must not end the one that cleans up after it.
        trap '' HUP TERM
        while process_pid "$dir" >/dev/null && [[ $(<"$dir/pid") == "$mine" ]]; do
            [[ $(process_start_time "$owner") == "$owner_started" ]] || process_kill "$dir"
            sleep 0.5
        done
    ) >/dev/null 2>&1 </dev/null &
}
