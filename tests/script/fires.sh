#!/bin/sh
# fires: watchctl doctor says of this machine's breakpoints what gdb and perf
# find.  Where they fire for others, but not for doctor, all tests of real
# watches would be skipped, and it would look as if they had passed.
set -eu

. "$TOP/tests/support/needs.sh"
needs gdb perf
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cat > writer.c <<'END_OF_C'
volatile long word;
int main(void)
{
	for (int i = 1; i <= 5; i++)
		word = i;
	return 0;
}
END_OF_C
${CC:-cc} -g -O0 -no-pie -o writer writer.c
"$WATCHCTL" doctor > doctor 2>&1 || :

# compare ROW FIRES WHO: what doctor says in this row
compare()
{
	said=$(sed -n "s/^\([^ ]*\)  *$1 .*/\1/p" doctor)
	[ "$said" = ok ] && ours=yes || ours=no
	[ $ours = "$2" ] || {
		cat doctor
		echo "$3 finds that breakpoints fire: $2; doctor: $ours"
		exit 1
	}
}

fires=no
gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'break main' -ex run \
    -ex 'watch word' -ex continue ./writer < /dev/null > gdb 2>&1 || :
! grep -q '^Hardware watchpoint' gdb || ! grep -q '^New value = 1$' gdb ||
    fires=yes
compare ptrace $fires gdb

address=$(nm writer | sed -n 's/ [A-Z] word$//p')
perf stat -x, -e "mem:0x$address/8:w:u" ./writer > /dev/null 2> perf ||
    not_run "perf stat has no breakpoints: $(tail -n 1 perf)"
fires=no
! grep -q '^5,' perf || fires=yes
compare write $fires 'perf stat'
