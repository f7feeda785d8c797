#!/bin/sh
# heap_identity: the share of a program's allocations that a further run of
# --heap would find again, by program, callers, size and number, in ten programs
# as they are: with address space layout randomization and seeds of hashes.
# $1: the library that writes them down, which heap_trace.c makes.
set -eu

room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
mkdir -p "$room/watchctl" "$room/lib/heapguard" "$room/input"
built=$(dirname "$WATCHCTL")
cp "$built/watchctl" "$built/watchctl-explain" "$room/watchctl"
cp "$1" "$room/lib/heapguard/libwatchpoint-heap.so"

# Run a command with the guard; its allocations, sorted.
trace() {
	into=$1; shift
	rm -rf "$room/trace" && mkdir "$room/trace"
	(cd "$room/input" && HEAP_TRACE="$room/trace" "$room/watchctl/watchctl" \
	    --heap --heap-runs 0 --no-cache -O /dev/null -- "$@" \
	    </dev/null >/dev/null 2>&1) || true
	cat "$room/trace"/* > "$room/$into"
}

# How many lines of the first are in the second, without a field.
found() {
	for i in 1 2; do
		cut -d' ' -f"$1" "$room/$i" | LC_ALL=C sort > "$room/$i.sorted"
	done
	LC_ALL=C comm -12 "$room/1.sorted" "$room/2.sorted" | wc -l
}

measure() {
	name=$1; shift
	if ! command -v "$1" >/dev/null; then
		echo "$name: $1 is not installed"
		return
	fi
	trace 1 "$@"
	trace 2 "$@"
	all=$(wc -l < "$room/1")
	awk -v name="$name" -v all="$all" -v number="$(found 1-4)" \
	    -v thread="$(found 1-3,5)" 'BEGIN {
		if (all == 0) { print name ": nothing was allocated"; exit 1 }
		printf "%-28s %7d allocations, found by number %6.2f %%, by " \
		    "number in the thread %6.2f %%\n", name, all,
		    100 * number / all, 100 * thread / all }'
}

cd "$room/input"
awk 'BEGIN { for (i = 0; i < 200; i++) printf "int f%d(int a, int *b) { int s" \
    " = a; for (int i = 0; i < a; i++) s += b[i] * %d; return s; }\n", i, i }' \
    > source.c
awk 'BEGIN { print "create table t(a integer primary key, b text); begin;"
    for (i = 0; i < 5000; i++) printf "insert into t values(%d, %c%x%c);\n", i,
    39, i * 7919, 39
    print "commit; create index x on t(b); select count(*) from t, t as u" \
    " where t.b = u.b;" }' > source.sql
cat > threads.py <<'EOF'
import json, re, threading
def work(n):
    for i in range(200):
        text = json.dumps({str(k): [k, i] for k in range(n)})
        re.findall(r'"(\d+)"', text)
        json.loads(text)
threads = [threading.Thread(target=work, args=(20 + n,)) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
EOF
cat > serve.sh <<'EOF'
redis-server --port 0 --unixsocket "$PWD/socket" --save '' > /dev/null &
server=$!
until redis-cli -s socket ping > /dev/null 2>&1; do
	kill -0 $server || exit 1
	sleep 0.1
done
i=0
while [ $i -lt 2000 ]; do
	echo "set key:$i value$i"; echo "lpush list $i"; echo "zadd z $i m$i"
	i=$((i + 1))
done | redis-cli -s socket > /dev/null
redis-cli -s socket shutdown nosave
wait
EOF
git init -q repository
(cd repository && for i in 1 2 3 4 5; do cat ../source.sql > "file$i"
    echo $i >> "file$i"; git add .; git -c user.name=n -c user.email=e \
    commit -qm "commit $i"; done)

measure gcc gcc -O1 -c -o source.o source.c
measure git git -C repository log --stat -p
measure perl perl -e 'my %h; $h{$_} = [$_, "x$_"] for 1 .. 20000; print scalar
    sort keys %h'
measure sqlite3 sqlite3 :memory: '.read source.sql'
measure python3 env PYTHONMALLOC=malloc python3 -c 'import json; print(len(
    json.dumps({str(k): [k] for k in range(5000)})))'
measure 'python3, 4 threads' env PYTHONMALLOC=malloc python3 threads.py
measure redis-server sh serve.sh
measure 'xz, 2 threads' xz -T2 -k -f --block-size=64KiB source.sql
measure 'bash, 20 processes' bash -c 'for i in {1..20}; do a[i]=$(echo $i); done'
measure 'gio (GLib)' gio list -a standard::size /usr/share
if [ -x /usr/lib/qt5/bin/lconvert ]; then
	PATH=$PATH:/usr/lib/qt5/bin
	printf '<RCC><qresource><file>source.sql</file></qresource></RCC>' \
	    > source.qrc
fi
measure 'rcc (Qt)' rcc -o rcc.out source.qrc
