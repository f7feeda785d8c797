# jobs: what is tried in a guest, with truth that is known.  Each row of /rows
# is a function here, which returns 0: as it should be; 77: cannot be tested
# here, and its last line says why; else its last line says what is wrong.

arm=
[ "$(uname -m)" != aarch64 ] || arm=yes
level=/proc/sys/kernel/perf_event_paranoid
tests=/tests

# A command as an ordinary user, with a capability or none: CAPABILITY
# COMMAND...
as_user()
{
	caps=-all
	[ "$1" = none ] || caps=$caps,+$1
	shift
	/usr/bin/setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=$caps \
	    --ambient-caps=$caps --bounding-set=$caps "$@"
}

wrong()
{
	echo "$*"
	return 1
}

# not_on_arm WHY: for what has no meaning, or does not work, on arm64
not_on_arm()
{
	[ -z "$arm" ] || {
		echo "$*"
		return 77
	}
}

not_on_amd()
{
	[ -n "$arm" ] || {
		echo "$*"
		return 77
	}
}

# either AMD64 [ARM64]
either()
{
	[ -n "$arm" ] && echo "${2-}" || echo "$1"
}

# equal WHAT GOT WANTED
equal()
{
	[ "$2" = "$3" ] || wrong "$1: '$2', not '$3'"
}

# --- the libraries' own tests ---

pure()
{
	failed=
	for test in "$@"; do
		LD_LIBRARY_PATH=/gcc timeout 240 "$test" > log 2>&1 && continue
		echo "exit status $?"
		grep -v '^\[ *\(RUN\|OK\)' log
		failed="$failed ${test##*/}"
	done
	[ -z "$failed" ] || wrong "failed:$failed"
}

pure_watchpoint()
{
	pure $tests/watchpoint/*
}

pure_explain()
{
	pure $tests/explain/*
}

# --- in the process ---

inside()
{
	timeout -k 5 240 /bin/truth "$1"
}

in_sigtrap() { inside in_sigtrap; }
in_async() { inside in_async; }
in_ptrace() { inside in_ptrace; }
in_threads() { inside in_threads; }
in_reads() { inside in_reads; }
in_execution() { inside in_execution; }
in_odd() { inside in_odd; }

# The deliveries that need not be chosen by hand.
by_each()
{
	for delivery in async ptrace; do
		(WATCHPOINT_DELIVERY=$delivery inside "$1") || {
			status=$?
			[ $status -eq 77 ] || echo "by $delivery"
			return $status
		}
	done
}

in_pair()
{
	not_on_amd "qemu reports it to one of them only" || return
	by_each in_pair
}

in_exclusive() { by_each in_exclusive; }

in_kernel()
{
	not_on_arm "arm64 does not report the kernel's accesses" || return
	inside in_kernel
}

in_freeze() { inside in_freeze; }

in_control() { inside in_control; }
outside() { inside outside; }

in_new_threads() { inside in_new_threads; }

# --- watchctl ---

# How many lines of its JSON have this, and of these how many are hits.
lines()
{
	grep -c -e "$1" out
}

hit_lines()
{
	grep '"type":"hit"' out | grep -c -e "$1"
}

# What a command reads: that it may go on, and end; or nothing, until so many
# hits are reported.
go_on()
{
	printf 'go\nend\n'
}

until_20()
{
	until [ "$(lines '"type":"hit"' 2> /dev/null)" -ge 20 ] 2> /dev/null; do
		usleep 10000
	done
}

# watch STATUS OPTION... -- COMMAND...: run it; its JSON goes to the file out.
watch()
{
	wanted=$1
	shift
	rm -f out
	${talk-go_on} | $as timeout -k 5 240 watchctl -o json -O out "$@" \
	    > said 2>&1
	status=$?
	[ $status -eq "$wanted" ] || {
		grep -v -e '^pid' -e '^done' said
		wrong "exit status $status, not $wanted"
	}
}

# So many hits, and none lost.
hits()
{
	equal hits "$(lines '"type":"hit"')" "$1" &&
	    equal "ends with that count" \
	    "$(lines "\"type\":\"end\",\"hits\":$1,.*\"lost\":0")" 1
}

# So many by `bump`, at its line.
bumps()
{
	hits "$1" && equal "in bump" "$(hit_lines \
	    '"frames":.{"pc":"[^"]*","function":"bump",.*counter.c","line":30,')" \
	    "$1"
}

# So many of one thread: each value is that before and one.  What was before the
# first may be given; a recording does not know it.  Where the kernel's writes
# are not seen, on arm64, what was before is not known.  Exit status 3: what was
# before some is left out.
counted()
{
	bumps "$1" && awk -v first="${2-0}" -v unknown="$arm" '
	BEGIN { n = 0 }
	/"type":"hit"/ {
		match($0, /"old_text":"[0-9]*"/)
		old = substr($0, RSTART + 12, RLENGTH - 13)
		match($0, /"new_text":"[0-9]*"/)
		new = substr($0, RSTART + 12, RLENGTH - 13)
		want = unknown ? "" : n == 0 ? first "" : n ""
		left_out = left_out || (old == "" && want != "")
		if ((old != want && old != "") || new != ++n "") {
			print "hit " n ": " old " -> " new
			wrong = 1
			exit 1
		}
	}
	END {
		if (left_out && !wrong)
			print "old values are left out"
		exit wrong ? 1 : left_out ? 3 : 0
	}' out
}

# COMMAND..., which ends with `counted`: on a processor that stands still now
# and then, as emulated ones do, not each value can be proved.
proved()
{
	for try in 1 2 3 4 5 6 7 8; do
		came=0
		"$@" || came=$?
		[ $came -eq 3 ] || break
	done
	return $came
}

# Which ways doctor finds, by trying: WAY...; a line of plain reasons for
# others.
doctor_finds()
{
	$as watchctl doctor -o json > out 2> said ||
	    wrong "exit status $?: $(cat out said)" || return
	for way; do
		equal $way "$(lines "\"name\":\"$way\",\"ok\":true")" 1 ||
		    return
	done
	equal "ways that work" "$(grep -o \
	    '"name":"\(ring\|stop\|inside\)","ok":true' out | wc -l)" $# &&
	    equal "bare errors" "$(lines 'Argument list too long')" 0
}

doctor() { doctor_finds ring stop inside; }

doctor_user()
{
	echo 3 > $level
	as="as_user none" doctor_finds stop inside
}

attach()
{
	rm -f in out
	mkfifo in
	counter 3 10 < in > told &
	victim=$!
	exec 3> in
	until grep -q pid told; do usleep 10000; done
	watchctl -w counter -o json -O out -p $victim > said 2>&1 &
	watcher=$!
	until grep -qs '"type":"start"' out; do
		kill -0 $watcher 2> /dev/null || {
			exec 3>&-
			wait $victim
			wrong "$(cat said)"
			return
		}
		usleep 10000
	done
	printf 'go\nend\n' >&3
	exec 3>&-
	wait $victim
	equal "the program's status" $? 7
	wait $watcher
	equal "watchctl's status" $? 0 && bumps 30 &&
	    equal threads "$(grep '"type":"hit"' out |
	    sed 's/.*"tid":\([0-9]*\).*/\1/' | sort -u | wc -l)" 3
}

count_up()
{
	watch 7 -w counter -- counter 1 "$1" && counted "$1"
}

command() { proved count_up 20; }

by_bpf()
{
	not_on_arm "arm64 traps before the access: rings are used" || return
	proved count_up 10 || return
	[ "$(lines '"delivery":"bpf"')" = 1 ] && return
	watchctl doctor -o json | grep -q '"delivery_reason":[^}]*ulimit -l' ||
	    wrong "no word of ulimit -l" || return
	ulimit -l unlimited
	proved count_up 10 && equal "by BPF" "$(lines '"delivery":"bpf"')" 1
}

by_ring()
{
	echo 2 > $level
	as="as_user none" watch 7 -w counter -- counter 1 10 && hits 10 &&
	    equal "by ring" "$(lines '"delivery":"ring"')" 1
}

by_perf_stop()
{
	not_on_arm "a stop would end the kernel's step over a hit: debug registers are used" ||
	    return
	watch 7 --stop -w counter -- counter 3 10 && bumps 30 &&
	    watch 7 --stop -w counter -- counter 1 10 && counted 10
}

by_debug_registers()
{
	echo 3 > $level
	as="as_user none" watch 7 --stop -w counter -- counter 3 10 && bumps 30 &&
	    equal "by ptrace" "$(lines '"delivery":"ptrace"')" 1
}

# Both values of each write, where one thread has the memory to itself.
stop_values()
{
	watch 7 --stop -w word -- acts mix 5 && hits 20 &&
	    equal "both values" "$(hit_lines '"old":.*"new":')" \
	    "$(lines '"type":"hit"')"
}

inside_by()
{
	export WATCHPOINT_DELIVERY="$1"
	watch 7 --inside -w counter -- counter 3 10 && bumps 30
}

inside_sigtrap()
{
	not_on_arm "arm64 traps before the access: async is used" || return
	truth facts | grep -q 'sigtrap.*no' && {
		echo "sigtrap came with Linux 5.13"
		return 77
	}
	inside_by sigtrap
}

inside_async()
{
	not_on_arm "events of other threads need a tracer, which would end the kernel's step over a hit" ||
	    return
	inside_by async
}

inside_ptrace()
{
	inside_by ptrace
}

kernel_write()
{
	not_on_arm "arm64 does not report the kernel's accesses" || return
	watch 7 -w filled -- counter 1 1 && hits 1 &&
	    equal "by read(2)" "$(lines '"origin":"kernel","syscall":"read","syscall_bytes":8')" 1
}

# acts mix 5: 5 stores, 10 loads, 15 that are both; on arm64 the latter are 15
# loads and 15 stores
reads()
{
	watch 7 -r word -- acts mix 5 && hits 25 &&
	    equal reads "$(hit_lines '"access":"read",')" "$(either 10 25)"
}

accesses()
{
	watch 7 -a word -- acts mix 5 && hits "$(either 30 45)" &&
	    equal writes "$(hit_lines '"access":"write"')" "$(either 5 20)"
}

execution()
{
	watch 7 -x called -- acts call 8 && hits 8 &&
	    equal "in called" "$(lines '"frames":.{"pc":"[^"]*","function":"called"')" 8
}

# The bytes that each instruction touched, and what it stored there if registers
# show that: forms_aarch64.c.
instructions()
{
	not_on_amd "by truth_live_test" || return
	watch 7 -w area+16:8 -- forms && hits 14 || return
	sed -n '/"type":"hit"/{
	    s/.*"confidence":"exact","addr":"[^"]*","size":\([0-9]*\)/\1 /
	    s/}.*"new":"\([^"]*\)".*"value_source":"\(register\|immediate\)".*/ \1/
	    s/}.*/ -/
	    p
	}' out > touched
	equal stores "$(tr -s ' ' < touched | tr '\n' ';')" \
	    "8 0x1111111111111111;4 0x22222222;2 0x3333;1 0x44;8 0x5555555555555555;8 0x6666666666666666;8 0x7777777777777777;16 0x8888888888888888;8 0x9999999999999999;8 0xaaaaaaaaaaaaaaaa;16 -;16 -;8 0xbbbbbbbbbbbbbbbb;8 0x0;"
}

# One access to two watches, by each way.
pair()
{
	not_on_amd "qemu reports it to one of them only" || return
	for way in "" --stop --inside; do
		talk=until_20 watch 0 $way -w twin:8 -w twin+8:8 -- \
		    truth twins && hits 40 &&
		    equal "of the second" "$(hit_lines '"watch":2,')" 20 ||
		    wrong "${way:-ring}" || return
	done
}

# What uses ldxr and stxr goes on, and a line says that it is watched no more.
exclusive()
{
	not_on_amd "x86-64 has no such instructions" || return
	for way in "" --stop --inside; do
		watch 0 $way -a truth.c!word -- truth atomic &&
		    { grep -q 'ldxr and stxr' said ||
		    wrong "no line: $(cat said)"; } ||
		    wrong "${way:-ring}" || return
	done
	watch 120 --error-exitcode 66 --allow '*' -w truth.c!word -- truth atomic
}

# tails.c, with and without debug information: up to main, ~ behind who ended in a
# jump, ? where others may be missing.
tails()
{
	for program in tails tails_bare; do
		watch 0 -w config:8 -- $program set reload middle either \
		    anywhere switches calls copies || return
		grep '"type":"hit"' out | grep -v '"function":"_dl_' | sed '
		    s/.*"frames":\[//
		    s/"function":"main".*//
		    s/"function":"/\n\n/g' | awk '
		    BEGIN { RS = ""; FS = "[\"]" }
		    /^[{]/ { next }
		    {
			name = $1
			sub(/[.].*/, "", name)
			printf "%s%s%s ", name, /"tail_call":true/ ? "~" : "",
			    /"gap":true/ ? "?" : ""
		    }' | sed 's/calls .*copies/calls copies/' > ways
		equal $program "$(cat ways)" "$(printf '%s ' set set reload~ \
		    set reload~ middle~ set either~? set anywhere~ \
		    set switches~ set calls copies~)" || return
	done
}

odd()
{
	watch 0 -w byte+1:7 -- truth bytes && hits 7 &&
	    watch 0 -w byte+3:5 -- truth bytes && hits 5 &&
	    watch 0 -w byte+6:3 -- truth bytes && hits 3
}

executes()
{
	watch 7 --if-missing skip -w counter -- sh -c 'exec counter 1 10' &&
	    bumps 10
}

children()
{
	watch 7 -f -w word -- acts father 3 && hits 33
}

# family LEAST STATUS OPTION...: what family.c writes: each value is told, and what
# it replaced where that is known, which is so often at least.
family()
{
	least=$1
	shift
	watch "$@" -f --stop -w word -- family && hits 12 &&
	    equal values "$(sed -n '/"type":"hit"/s/.*"new_text":"\([0-9]*\)".*/\1/p' \
	    out | tr '\n' ' ')" "1 11 12 2 20 21 31 22 51 52 41 3 " &&
	    equal processes "$(grep '"type":"hit"' out |
	    sed 's/.*"pid":\([0-9]*\),.*/\1/' | sort -u | wc -l)" 7 &&
	    equal "in store" "$(hit_lines '"frames":.{"pc":"[^"]*","function":"store"')" 12 &&
	    sed -n '/"type":"hit"/{
		s/.*"old_text":"\([0-9]*\)".*"new_text":"\([0-9]*\)".*/\1 \2/p
	    }' out | awk -v least="$least" '
	    BEGIN {
		n = split("0 1 1 11 11 12 1 2 2 20 20 21 21 31 21 22 21 51 51 52 21 41 21 3", at)
		for (i = 1; i < n; i += 2)
			was[at[i + 1]] = at[i]
	    }
	    was[$2] != $1 { print "from " $1 " to " $2; wrong = 1 }
	    END {
		if (NR < least)
			print "only " NR " values before"
		exit wrong || NR < least
	    }'
}

children_stop()
{
	watch 7 -f --stop -w word -- acts father 3 && hits 33 && family 8 7
}

children_registers()
{
	echo 3 > $level
	as="as_user none" family "$(either 0 8)" 7 &&
	    equal "by ptrace" "$(lines '"delivery":"ptrace"')" 1
}

# A child that executes another program is reported, and not vouched for.
children_executing()
{
	not_on_amd "what a child executes is watched too" || return
	family 8 7 && equal warnings "$(grep '"type":"warning"' out |
	    grep -c 'executed another program')" 1 &&
	    family 8 120 --error-exitcode 66 --allow '*' &&
	    { grep -q 'executed another program' said || wrong "no line"; } &&
	    watch 7 --error-exitcode 66 --allow '*' -f --stop -w word -- \
	    acts father 3 && hits 33
}

children_exclusive()
{
	not_on_amd "x86-64 has no such instructions" || return
	watch 7 -f --stop -w word -- family exclusive &&
	    { grep -q 'ldxr and stxr' said || wrong "no line: $(cat said)"; }
}

# heap_finds OPTION WHAT KIND [WRITER]: of overflow.c: this is found, and who
# did it
heap_finds()
{
	watch 3 "$1" -- overflow "$2" &&
	    equal "$2" "$(lines "\"kind\":\"$3\",.*\"size\":40,")" 1 &&
	    equal findings "$(lines '"type":"finding"')" 1 &&
	    equal "made in make_block" "$(lines '"type":"finding".*make_block')" 1 || return
	[ -z "${4-}" ] || equal "by $4" "$(hit_lines "\"function\":\"$4\"")" 1
}

heap()
{
	heap_finds --heap past overflow one_past &&
	    equal offset "$(lines '"kind":"overflow",.*"offset":43,')" 1 &&
	    heap_finds --heap before underflow one_before &&
	    heap_finds --heap freed use-after-free after_free &&
	    heap_finds --heap twice double-free &&
	    watch 3 --heap -- overflow nothing &&
	    equal "of nothing" "$(lines '"type":"finding"')" 0
}

# The writer in the only run, where each block of its callers is damaged.
heap_sample()
{
	watch 3 --heap=sample -- overflow often &&
	    { [ "$(hit_lines '"function":"one_past"')" -ge 1 ] ||
	    wrong "no writer"; }
}

heap_quarantine()
{
	watch 3 --heap --heap-quarantine 0 -- overflow past &&
	    equal past "$(lines '"kind":"overflow",.*"size":40,"offset":43,')" 1 &&
	    watch 3 --heap --heap-quarantine 0 -- overflow freed &&
	    equal "after free, at once" "$(lines '"kind":"use-after-free"')" 0
}

record()
{
	rm -f data
	printf 'go\nend\n' | watchctl -w counter -o perf -O data -- \
	    counter 1 10 > said 2>&1
	equal status $? 7 && watchctl report -o json data > out 2> said &&
	    counted 10 ""
}

replay() { proved record; }

# narrow_libc, which is of i386: OPTION...  Without a stop it may be that a value is
# not known.
narrow_run()
{
	not_on_arm "i386 programs run on x86-64 alone" || return
	[ -x /bin/narrow_libc ] || {
		echo "cc -m32 makes no programs here"
		return 77
	}
	watch 0 "$@" -w counter -- narrow_libc /jobs.sh && hits 7 &&
	    equal types "$(hit_lines '"value_type":"int"')" 7 &&
	    equal "wrong values" "$(grep '"type":"hit"' out | awk -v stop="$1" '
	    BEGIN { split("1 7 12 13 14 15 16", want) }
	    {
		new = match($0, /"new_text":"[0-9]*"/) ?
		    substr($0, RSTART + 12, RLENGTH - 13) : ""
		if (new != want[NR] && (new != "" || stop == "--stop"))
			print want[NR] ": " new
	    }')" ""
}

narrow()
{
	narrow_run "$@" && equal callers "$(grep '"type":"hit"' out | sed 's/"function":"main".*//
	    s/"function":"/\n</g' | sed -n '/^</{s/".*//; p}' |
	    head -n 8 | tr -d '\n')" "<set<set<set<set<set<set<set<add"
}

narrow_ring() { narrow; }
narrow_stop() { narrow --stop; }

narrow_inside()
{
	deliveries="sigtrap async ptrace"
	truth facts | grep -q 'sigtrap.*no' && deliveries="async ptrace"
	for delivery in $deliveries; do
		WATCHPOINT_DELIVERY=$delivery narrow --inside || {
			status=$?
			[ $status -eq 77 ] || echo "by $delivery"
			return $status
		}
	done
}

# A write by `thread` is stray, or none is.
narrow_verdict()
{
	narrow_run --error-exitcode 66 --allow set --allow add \
	    --allow compare --allow thread || return
	watch 66 -w counter --error-exitcode 66 --allow set --allow add \
	    --allow compare -- narrow_libc /jobs.sh &&
	    equal "stray hits" "$(hit_lines '"stray":true')" 3
}

narrow_arm()
{
	not_on_amd "they run on arm64 alone" || return
	/bin/narrow_arm < /dev/null
	[ $? -eq 7 ] || {
		echo "this kernel runs none"
		return 77
	}
	for way in "" --stop --inside; do
		refused '64-bit' $way -w counter -- narrow_arm || return
	done
	rm -f in
	mkfifo in
	/bin/narrow_arm < in &
	victim=$!
	exec 3> in
	for way in "" --stop; do
		refused "process $victim is a 32-bit program" $way -w counter \
		    -p $victim || return
	done
	exec 3>&-
	wait $victim
	equal "the program's status" $? 7
}

killed()
{
	rm -f in out
	mkfifo in
	counter 1 200 < in > told &
	victim=$!
	exec 3> in
	until grep -q pid told; do usleep 10000; done
	watchctl --stop -w counter -o json -O out \
	    -p $victim > said 2>&1 &
	watcher=$!
	until grep -qs '"type":"start"' out; do usleep 10000; done
	printf 'go\n' >&3
	until grep -q '"type":"hit"' out; do usleep 10000; done
	kill -9 $watcher
	wait $watcher 2> /dev/null
	printf 'end\n' >&3
	exec 3>&-
	wait $victim
	equal "the program's status" $? 7 && equal done "$(grep -c done told)" 1
}

# refused LINE-PATTERN WATCHCTL-OPTION...: status 125, nothing on standard
# output, and a line that has this
refused()
{
	pattern=$1
	shift
	$as watchctl "$@" > told 2> said < /dev/null
	equal status $? 125 && equal lines "$(wc -l < said)" 1 &&
	    { grep -q -e "$pattern" said || wrong "$(cat said)"; }
}

paranoid_user()
{
	echo 3 > $level
	as="as_user none"
	refused 'perf_event_paranoid.*3.*--stop' -w counter -- counter 1 1
}

paranoid_perfmon()
{
	echo 3 > $level
	as="as_user perfmon"
	refused 'perf_event_paranoid.*3' -w counter -- counter 1 1
}

paranoid_admin()
{
	echo 3 > $level
	as="as_user sys_admin" proved count_up 10
}

bad_input()
{
	refused counter -w countr -- counter 1 1 &&
	    refused 999999 -w counter -p 999999 &&
	    refused mapped -w 0x10:8 -p $$ &&
	    refused '5 slots' -w counter -w filled -w counter+1:1 -w counter+2:1 \
	    -w counter+3:1 -- counter 1 1
}

# --- all of them ---

# The words that the kernel's command line has for us: NAME
given()
{
	tr ' ' '\n' < /proc/cmdline | sed -n "s/^matrix\.$1=//p" | tr , ' '
}

# One that never ends is not waited for; a helper of the one before may still
# write to its report.
once()
{
	rm -f report
	timeout -k 5 900 sh /jobs.sh "$1" > report 2>&1 < /dev/null
	status=$?
	reason=$(grep . report | tail -n 1 | tr -d '|')
}

report_row()
{
	case $status in
	0) echo "@$1|ok|" ;;
	77) echo "@$1|not testable|$reason" ;;
	*)
		echo "@$1|failed|${reason:-exit status $status}"
		head -c 20000 report | tr -d '\000' | sed "s/^/    $1: /"
		echo
		;;
	esac
}

try()
{
	once "$1"
	for again in $again_times; do
		case $status in
		0 | 77) break ;;
		esac
		echo "    $1: once more after: ${reason:-exit status $status}"
		once "$1"
	done
	report_row "$1"
}

mkdir -p /tmp/jobs
chmod 777 /tmp/jobs
cd /tmp/jobs || exit
[ $# -eq 0 ] || {
	echo 2 > $level
	as=
	"$1"
	exit
}
truth facts | sed 's/^/@=/'
tries=$(given tries)
again_times=$(seq "$((${tries:-1} - 1))")
left_out=" $(given left_out) "
grep -v '^#' /rows | while read -r row text; do
	case $left_out in
	*" $row "*) echo "@$row|not run|" ;;
	*) try "$row" ;;
	esac
done
