#!/bin/sh
# fleet: a parallel job under Open MPI, each rank with a report of its own; what
# rsyslog collects of them over RELP, also after it was ended in between; and
# all of it merged.
set -eu

. "$TOP/tests/support/needs.sh"
needs mpirun mpicc rsyslogd jq
needs_breakpoints
scratch=$(mktemp -d)
pids=
trap '[ -z "$pids" ] || kill $pids || :; wait; rm -rf "$scratch"' EXIT
cd "$scratch"
cp "$TOP/examples/fleet/solver.c" .
mpicc -g -O0 -o solver solver.c
root=
[ "$(id -u)" -ne 0 ] || root=--allow-run-as-root

mkdir log
# the example of docs/fleet.md, on one machine
mpirun $root --oversubscribe -n 4 "$WATCHCTL" -w residual -o json \
    -O 'log/%h-%r.jsonl' -- ./solver > mpi.out 2> mpi.err || {
	cat mpi.out mpi.err
	exit 1
}
grep -q '^residual ' mpi.out
host=$(hostname)
for rank in 0 1 2 3; do
	file=log/$host-$rank.jsonl
	[ "$(head -n 1 "$file" | jq -r .host)" = "$host" ]
	[ "$(head -n 1 "$file" | jq .rank)" = $rank ]
done

# rows FILE...: host, rank and hits of each writer
rows()
{
	"$WATCHCTL" report -o summary,json "$@" > merged 2> said
	jq -r 'select(.type == "stack") | "\(.id) \(.frames[0].function)"' \
	    merged | sort > stacks
	jq -r 'select(.type == "summary") |
	    "\(.stack) \(.host) \(.rank) \(.count)"' merged | sort |
	    join stacks - | cut -d ' ' -f 2- | sort
}
for rank in 0 1 2 3; do
	printf 'exchange %s %s 10\nrelax %s %s 10\n' "$host" $rank "$host" $rank
done | sort > wanted
rows log/*.jsonl > got
diff wanted got
# both twice, and half of one once more
sed -n 1,12p "log/$host-1.jsonl" > some
rows log/*.jsonl log/*.jsonl some > got
diff wanted got
grep -q 'lines arrived twice' said
# recordings are merged with the rest
mpirun $root --oversubscribe -n 2 "$WATCHCTL" -w residual -o perf \
    -O 'rank%r.data' -- ./solver > mpi.out 2> mpi.err
rows "log/$host-2.jsonl" "log/$host-3.jsonl" rank0.data rank1.data > got
diff wanted got

if [ ! -e /usr/lib/x86_64-linux-gnu/rsyslog/omrelp.so ]; then
	not_run "rsyslog has no RELP here"
fi
# a port that is free now
port=$(/usr/bin/python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
mkdir node collected spool
for end in node collector; do
	mkdir spool/$end
	sed -e "s,/var/log/watchctl,$scratch/node,; s,/srv/watchctl,$scratch/collected," \
	    -e "s,/var/spool/rsyslog,$scratch/spool/$end,; s/2514/$port/" \
	    -e 's/collector\.example/127.0.0.1/' \
	    "$TOP/examples/fleet/$end.conf" > $end.conf
	rsyslogd -N 1 -f $end.conf > $end.check 2>&1 || {
		cat $end.check
		exit 1
	}
done
# collect END: start rsyslogd for that end
collect()
{
	rsyslogd -n -f $1.conf -i "$scratch/$1.pid" > $1.log 2>&1 &
	pids="$pids $!"
	eval "$1_pid=$!"
}
# await COMMAND...: until it succeeds
await()
{
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || {
			echo "in vain: $*"
			cat node.log collector.log
			return 1
		}
		sleep 0.1
	done
}
arrived()
{
	[ "$(cat collected/*.jsonl 2> /dev/null | jq -c 'select(.type == "end")' |
	    sort -u | wc -l)" -ge 1 ] &&
	    [ "$(grep -l '"type":"end"' collected/*.jsonl | wc -l)" -eq "$1" ]
}
collect collector
collect node
cp "log/$host-0.jsonl" "log/$host-1.jsonl" node/
await arrived 2
kill "$collector_pid"
wait "$collector_pid" || :
cp "log/$host-2.jsonl" "log/$host-3.jsonl" node/
sleep 0.3
collect collector
await arrived 4
rows collected/*.jsonl > got
diff wanted got
! grep 'left out' said
