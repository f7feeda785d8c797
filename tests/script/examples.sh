#!/bin/sh
# examples: each says what its first lines promise: who wrote, in which
# function, at which line of the source; and ends as it should.
set -eu

. "$TOP/tests/support/needs.sh"
needs_breakpoints
export WATCHPOINT_HELPER="$WATCHCTL"
out=$(mktemp)
trap 'rm -f "$out" doctor.out plain_suite' EXIT

# run NAME STATUS: what it and its helper say, until both have ended, is in $out
run()
{
	name=$1
	{
		"$EXAMPLES/$name" 2>&1 < /dev/null && echo "status 0" ||
		    echo "status $?"
	} 2> /dev/null | cat > "$out"
	says "status $2"
}

wrong()
{
	echo "$name: $*"
	cat "$out"
	exit 1
}

# says TEXT: a line has this in it
says()
{
	grep -qF "$1" "$out" || wrong "does not say: $1"
}

# culprit COUNT FUNCTION TEXT: so many reports have that function as their
# innermost frame, at the line of the source that has this text; and so has the
# comment at its top
culprit()
{
	source=$(ls "$TOP/examples/$name".c*)
	line=$(grep -nF "$3" "$source" | tail -n 1 | cut -d: -f1)
	n=$(grep -cE "^     0 +([a-z_]+::)?$2 .*${source##*/}:$line\$" "$out") ||
	    :
	[ "$n" -eq "$1" ] || wrong "$n backtraces of $2 at line $line, not $1"
	sed '/\*\//q' "$source" | grep -qF "${source##*/}:$line" ||
	    wrong "the comment at its top does not say line $line"
}

run watch 0
says '65 left'
says 'write  balance (int, 4 bytes at '
culprit 1 pay 'balance -= amount'

run freeze 1
says 'limit 2, stray writes 2'
says 'stray write  config (int, 4 of 8 bytes'
says '(same backtrace as #1)'
culprit 1 accepts 'config.limit = clients'

run list 0
says 'first value (8 bytes at '
culprit 2 add 'node->value += value'
[ "$(grep -c '^#' "$out")" -eq 2 ] || wrong 'a node that is not the first hits'

run plain_assert 134
culprit 1 log_in 'session->user = user'
says 'Assertion `wp_stray_missed() == 0 && wp_stray_count() == 0'

run cmocka_suite 1
culprit 1 accepts 'config.limit = clients'
says '[       OK ] reloading_changes_the_port'
says '[  FAILED  ] accepting_changes_nothing'
says '[  ERROR   ] --- stray write  config (int, 4 of 8 bytes'
says "examples/cmocka_suite.c:$line: error: Failure!"

run check_suite 1
culprit 2 accepts 'config.limit = clients'	# told, and in Check's message
says '0%: Checks: 1, Failures: 1, Errors: 0'
says 'accepting_changes_nothing:0: stray write'

# the same without watches of its own, and each test in a child of its own
# forked STATUS OPTION ...: watched from outside, it ends so
forked()
{
	want=$1
	shift
	status=0
	CK_FORK=yes "$WATCHCTL" --inside -w config --error-exitcode 66 "$@" \
	    -- ./plain_suite > "$out" 2>&1 < /dev/null || status=$?
	[ $status -eq "$want" ] || wrong "$* ends with $status, not $want"
}

# a sanitizer's library can be put into no other program
if [ "${UNDER:-}" != sanitized ]; then
	name='check_suite, in children'
	${CC:-cc} -g -DWP_DISABLE -I"$TOP/lib/watchpoint" -o plain_suite \
	    "$TOP/examples/check_suite.c" \
	    "$(dirname "$EXAMPLES")/lib/watchpoint/libwatchpoint.a" \
	    $(pkg-config --cflags --libs check) -pthread
	forked 66 -f --allow no_stray_writes
	says 'stray write  config (int, 4 of 8 bytes'
	forked 0 -f --allow accepts
	forked 120 --allow no_stray_writes
	says 'created a child by fork(2), which is not watched; -f watches it too'
fi

run gtest_suite 1
culprit 2 accepts 'config.limit = clients'
says "examples/gtest_suite.cc:$line: Failure"
says '[  FAILED  ] Config.AcceptingChangesNothing'
says '[  PASSED  ] 1 test.'
