#!/bin/sh
# who: gdb's command of that name reports writes up to the next stop, the
# program's end, so many hits, and a time, and leaves the program at gdb's
# prompt.
set -eu

. "$TOP/tests/support/needs.sh"
needs gdb
needs_breakpoints
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cat > prog.c <<'END_OF_C'
#include <unistd.h>
struct { int n; long total; } stats;
static void add(long v) { stats.total += v; }
void checkpoint(void) { }
static void spin(void) { for (int i = 0; i < 20000; i++) { add(3); usleep(1000); } }
int main(int argc, char **argv)
{
	(void)argv;
	add(1);
	add(2);
	checkpoint();
	if (argc > 1)
		spin();
	add(4);
	return 0;
}
END_OF_C
${CC:-cc} -g -O0 -o prog prog.c
export WATCHCTL
unset DEBUGINFOD_URLS

# debug ARGUMENT... < COMMANDS: what gdb says
debug()
{
	timeout 120 gdb -q -nx -iex 'set confirm off' -iex 'set pagination off' \
	    -iex "source $TOP/watchctl/gdb/who.py" --args ./prog "$@" > said 2>&1 || {
		cat said
		exit 1
	}
}
# expect TEXT [TIMES]: lines that have it
expect()
{
	found=$(grep -c -- "$1" said || :)
	if [ $# -eq 1 ] && [ "$found" -eq 0 ] ||
	    [ $# -eq 2 ] && [ "$found" -ne "$2" ]
	then
		echo "'$1' is there $found times:"
		cat said
		exit 1
	fi
}

# up to a breakpoint, then up to the end; what is wrong is one line
debug <<'END_OF_GDB'
who stats.total
break main
run
who nothing + 1
who stats.total + 1
who
who -n 0 stats.total
break checkpoint
who stats.total
print stats.total
who stats.total
quit
END_OF_GDB
expect 'who: the program is not being run' 1
expect "who: 'nothing + 1': No symbol \"nothing\" in current context" 1
expect "who: 'stats.total + 1': it has no address" 1
expect 'who \[-n N\] \[-t SECONDS\] EXPRESSION' 1
expect "watchctl: -n '0': not a whole number" 1
expect 'Breakpoint 2, checkpoint ()'
expect '= 3$' 1
expect 'stats.total: .*-> 3' 1
expect 'watchctl: 2 hits, 2 reported, 0 lost' 1
expect 'exited normally'
expect 'watchctl: 1 hits\?, 1 reported, 0 lost' 1
expect ' add .*prog.c:3'
expect 'another traces' 0
expect 'Traceback\|Python Exception' 0

# after so many, and after a time; the program is there
debug spin <<'END_OF_GDB'
break checkpoint
run
who -n 5 stats
print $_siginfo.si_signo
who -t 0.5 stats.total
print stats.total > 15
kill
quit
END_OF_GDB
expect 'watchctl: 5 hits, 5 reported, 0 lost' 1
expect 'Program received signal SIGINT' 2
expect '= 2$' 1
expect '= 1$' 1
expect 'killed' 1
expect 'another traces' 0
expect 'Traceback\|Python Exception' 0

# a reference is what it refers to; what is no process is refused
cat > ref.cc <<'END_OF_CC'
int n, &ref = n, after, more[4];
int main() { ref++; after++; return n; }
END_OF_CC
${CXX:-c++} -g -O0 -o prog ref.cc
debug <<'END_OF_GDB'
break main
run
who ref
run
generate-core-file core
kill
core-file core
who ref
quit
END_OF_GDB
expect '^watching n (4 bytes ' 1
expect 'watchctl: 1 hit, 1 reported, 0 lost' 1
expect 'who: .* a target of type core' 1
expect 'Traceback\|Python Exception' 0

# gdb has the debug registers itself; there is no watchctl
debug <<'END_OF_GDB'
break main
run
watch more[0]
watch more[1]
watch more[2]
watch more[3]
who ref
python WATCHCTL = "/nonexistent/watchctl"
who ref
END_OF_GDB
expect 'who: /nonexistent/watchctl cannot be run: No such file' 1
expect 'Traceback\|Python Exception\|Fatal signal' 0
