#!/usr/bin/env bash
# Leads a Java Kafka Connect worker through the life of some connectors, and writes down what its REST interface said and what its
# config topic and status topic held at each stage. See SOURCE.md.
#
#   record.sh BOOTSTRAP REST_URL GROUP     writes stages.txt, configs.tsv and status.tsv beside itself
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bootstrap=$1 url=$2 group=$3
jars=$("$here/../../services/kafka" install 4.3.1)
files=/tmp/oncewire-golden
mkdir -p "$files"
printf 'one\ntwo\nthree\n' >"$files/lines.txt"
stages=$here/stages.txt
: >"$stages"

call() { # METHOD PATH [BODY]
    curl -fsS -m 90 -X "$1" -H 'Content-Type: application/json' ${3:+-d "$3"} "$url$2" >/dev/null
}
# Waits until every connector and task named is in the state named: connector=STATE or connector/task=STATE or connector#TASKS.
until_states() {
    local wanted now tries
    for wanted in "$@"; do
        for ((tries = 0; ; tries++)); do
            ((tries < 240)) || { echo "never came: $wanted" >&2; exit 1; }
            now=$(curl -s -m 10 "$url/connectors?expand=status")
            case $wanted in
            *'#'*) [[ $(jq -r --arg c "${wanted%%#*}" '.[$c].status.tasks | length' <<<"$now") != "${wanted##*#}" ]] || break ;;
            */*) [[ $(jq -r --arg c "${wanted%%/*}" --argjson t "$(cut -d/ -f2 <<<"${wanted%%=*}")" \
                '.[$c].status.tasks[]? | select(.id == $t) | .state' <<<"$now") != "${wanted##*=}" ]] || break ;;
            *) [[ $(jq -r --arg c "${wanted%%=*}" '.[$c].status.connector.state' <<<"$now") != "${wanted##*=}" ]] || break ;;
            esac
            sleep 0.25
        done
    done
}
ends() {
    java -cp "$jars/*" org.apache.kafka.tools.GetOffsetShell --bootstrap-server "$bootstrap" \
        --topic-partitions "$group-configs,$group-status" 2>/dev/null | sort
}
# What is asked is noted once nothing has moved while it was asked.
stage() { # NAME
    local before='' after connector
    while :; do
        before=$(ends)
        {
            echo "stage $1"
            printf 'expand %s\n' "$(curl -fsS "$url/connectors?expand=info&expand=status" | jq -c -S .)"
            for connector in $(curl -fsS "$url/connectors" | jq -r '.[]' | sort); do
                printf 'topics %s\n' "$(curl -fsS "$url/connectors/$connector/topics" | jq -c -S .)"
                printf 'tasks %s %s\n' "$connector" "$(curl -fsS "$url/connectors/$connector/tasks" | jq -c -S .)"
            done
        } >"$files/stage"
        after=$(ends)
        [[ $before != "$after" ]] || break
    done
    { sed 's/^/end /' <<<"$after"; } >>"$files/stage"
    cat "$files/stage" >>"$stages"
    echo "$1" >&2
}
dump() { # TOPIC → partition, offset, key, value
    java -cp "$jars/*" org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$bootstrap" --topic "$1" --from-beginning \
        --timeout-ms 5000 --isolation-level read_committed --formatter-property print.partition=true --formatter-property print.offset=true \
        --formatter-property print.key=true --formatter-property null.literal=NULL 2>/dev/null |
        sed -n 's/^Partition:\([0-9]*\)\tOffset:\([0-9]*\)\t/\1\t\2\t/p' | sort -s -k1,1n -k2,2n
}

class=org.apache.kafka.connect.file.FileStreamSourceConnector
lines() { # TOPIC
    printf '{"connector.class":"%s","file":"%s/lines.txt","topic":"%s","tasks.max":"1"}' "$class" "$files" "$1"
}
sequence() { # TASKS
    printf '{"connector.class":"io.oncewire.connect.sequence.SequenceSourceConnector","topic":"golden-sequence","tasks.max":"%s","tasks":"%s","rate.per.second":"10"}' "$1" "$1"
}

stage nothing
call POST /connectors "{\"name\":\"lines\",\"config\":$(lines golden-a)}"
until_states lines=RUNNING lines/0=RUNNING
sleep 3
stage created
call POST /connectors "{\"name\":\"waits-1\",\"config\":$(lines golden-w),\"initial_state\":\"STOPPED\"}"
until_states waits-1=STOPPED
stage created-stopped
call PUT /connectors/lines/pause
until_states lines=PAUSED lines/0=PAUSED
stage paused
call PUT /connectors/lines/resume
until_states lines=RUNNING lines/0=RUNNING
stage resumed
call PUT /connectors/lines/stop
until_states lines=STOPPED lines#0
stage stopped
call PUT /connectors/lines/resume
until_states lines=RUNNING lines/0=RUNNING
stage resumed-from-stopped
call PUT /connectors/lines/config "$(lines golden-b)"
sleep 3
until_states lines=RUNNING lines/0=RUNNING
printf 'four\n' >>"$files/lines.txt"
sleep 3
stage reconfigured
call PUT /connectors/sequence/config "$(sequence 3)"
until_states sequence=RUNNING sequence/0=RUNNING sequence/1=RUNNING sequence/2=RUNNING
stage three-tasks
call PUT /connectors/sequence/config "$(sequence 2)"
until_states sequence#2 sequence/0=RUNNING sequence/1=RUNNING
sleep 3
stage two-tasks
call POST '/connectors/sequence/restart?includeTasks=true&onlyFailed=false'
sleep 3
until_states sequence=RUNNING sequence/0=RUNNING sequence/1=RUNNING
stage restarted
call PUT /connectors/broken/config "{\"connector.class\":\"$class\",\"file\":\"$files/lines.txt\",\"topic\":\"golden-x\",\"tasks.max\":\"1\",\"producer.override.transaction.timeout.ms\":\"2000000000\"}"
until_states broken=RUNNING broken/0=FAILED
stage failed
call PUT /connectors/lines/topics/reset
sleep 2
stage topics-reset
call PUT '/admin/loggers/org.apache.kafka.connect.file?scope=cluster' '{"level":"DEBUG"}'
stage logger
call DELETE /connectors/lines
call DELETE /connectors/waits-1
sleep 2
stage deleted
call PUT /connectors/lines/config "$(lines golden-c)"
until_states lines=RUNNING lines/0=RUNNING
stage made-again

dump "$group-configs" >"$here/configs.tsv"
dump "$group-status" >"$here/status.tsv"
