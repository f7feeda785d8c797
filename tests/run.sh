#!/bin/sh
# run: one test, its summary in a line with its seconds, and its counts.
#
#   run.sh NAME COMMAND...   run, and append its counts to $RESULTS; the output
#                            is shown unless all passed
#   run.sh                   the tally of $RESULTS
#
# A cmocka program counts as many as its tests.  Any other command counts as
# one: passed with exit status 0, skipped with 77, else failed.  KIND=fuzz marks
# one whose 77 is a crash.
set -u

# "Running N test(s)." begins a group of cmocka's, "N test(s) run." ends it.
# A crash leaves a group without its end; a child that flushes its parent's
# output repeats lines.  Either way the sums differ.
cmocka_counts()
{
	awk '
	/^\[==========\] Running / { announced += $3; on = 1 }
	/^\[==========\] .* run\.$/ { on = 0 }
	on && /^\[       OK \] / { passed++ }
	on && /^\[  FAILED  \] / { failed++ }
	on && /^\[  SKIPPED \] / { skipped++ }
	END {
		if (passed + failed + skipped != announced && !failed)
			failed++
		print passed + 0, failed + 0, skipped + 0
	}' "$1"
}

counts()
{
	if grep -q '^\[==========\] Running ' "$log"; then
		cmocka_counts "$log"
	elif [ $skipped = yes ]; then
		echo 0 0 1
	else
		echo $((status == 0)) $((status != 0)) 0
	fi
}

tally()
{
	awk '
	{ passed += $1; failed += $2; skipped += $3 }
	$2 { bad = bad " " $4 }
	$3 { left = left ", not run: " $4 }
	END {
		if (bad)
			print "failed:" bad
		printf "%d passed, %d failed, %d skipped%s\n",
		    passed, failed, skipped,
		    passed + failed ? "" : ": nothing was tested" left
		exit failed || passed == 0
	}' "$RESULTS"
}

# The uppermost directory above the tree that other users may not enter, as
# /root is.
closed()
{
	dir=$(dirname "$TOP")
	while [ "$dir" != / ]; do
		case $(stat -c %A "$dir") in
		*[xt]) ;;
		*) found=$dir ;;
		esac
		dir=$(dirname "$dir")
	done
	echo "${found:-}"
}

# Tests of root's that become an ordinary user must still find their programs:
# they see a directory there that has nothing but the tree in it.
open='
	closed=$1 at=$PWD
	shift
	umask 022
	if mount --bind "$TOP" /mnt; then
		mount -t tmpfs -o mode=755 tmpfs "$closed" && mkdir -p "$TOP" &&
		    mount --move /mnt "$TOP" && cd "$at" || exit 1
	fi
	exec "$@"'

[ -f "$RESULTS" ] || : > "$RESULTS"
if [ $# -eq 0 ]; then
	tally
	exit
fi

name=$1${UNDER:-}
log=$1.log
shift
begin=$(date +%s)
case $(id -u)$1 in
0./*) closed=$(closed) ;;
*) closed= ;;
esac
if [ -n "$closed" ] && unshare -m true 2> /dev/null; then
	set -- unshare -m sh -c "$open" sh "$closed" "$@"
fi
timeout -k 5 "${TIMEOUT:-300}" "$@" > "$log" 2>&1 < /dev/null
status=$?
seconds=$(($(date +%s) - begin))

skipped=no
[ "$status" -ne 77 ] || [ "${KIND:-}" = fuzz ] || skipped=yes
set -- $(counts)
[ "$status" -eq 0 ] || [ $skipped = yes ] || [ "$2" -ne 0 ] ||
    set -- "$1" 1 "$3"

word=ok
[ "$3" -eq 0 ] || word=skip
[ "$2" -eq 0 ] || word=FAIL
[ $word = ok ] || cat "$log"
[ "$status" -ne 124 ] || echo "$name: no end after ${TIMEOUT:-300} seconds"
printf '%-4s  %-32s %3d passed, %d failed, %d skipped  %3d s\n' \
    $word "$name" "$1" "$2" "$3" $seconds
echo "$1 $2 $3 $name" >> "$RESULTS"
