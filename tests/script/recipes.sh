#!/bin/sh
# recipes: the examples for pytest, cargo test and systemd do what they are for: a
# stray write fails the tests and is named, others do not; the recorder's unit is
# right, and has the rights that it needs.
set -eu

not_run()
{
	echo "not run: $*"
	exit 77
}
for tool in /usr/bin/python3 /usr/bin/cargo /usr/bin/systemd-analyze setpriv; do
	command -v "$tool" > /dev/null || not_run "$tool is not here"
done
/usr/bin/python3 -c 'import pytest' || not_run 'pytest is not here'
[ "$(id -u)" -eq 0 ] || not_run 'this is not root'
scratch=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid"; rm -rf "$scratch"' EXIT
cd "$scratch"
cp -r "$TOP/examples/pytest" "$TOP/examples/cargo" "$TOP/examples/systemd" .
PATH=$(dirname "$WATCHCTL"):/usr/bin:$PATH
unset DEBUGINFOD_URLS

# expect STATUS TEXT COMMAND...: it ends so, and says that
expect()
{
	wanted=$1
	text=$2
	shift 2
	status=0
	"$@" > said 2>&1 < /dev/null || status=$?
	if [ $status -ne "$wanted" ] || ! grep -qE "$text" said; then
		echo "$*: status $status, not $wanted, or not '$text':"
		cat said
		exit 1
	fi
}

cd pytest
${CC:-cc} -g -shared -fPIC $(pkg-config --cflags python3) -o limits.so limits.c
tests='/usr/bin/python3 -m pytest -p no:cacheprovider test_limits.py'
expect 0 '2 passed' $tests
watch='watchctl -w limits!limit --error-exitcode 66 --allow set_limit'
expect 66 '  1x  peak .*limits\.c:[0-9]+ ' $watch -- $tests
expect 0 ' 0 stray' $watch --allow peak -- $tests

cd ../cargo
HOME=$scratch
export HOME
unset RUSTUP_TOOLCHAIN RUSTC CARGO_HOME RUSTUP_HOME
expect 66 '  1x  .*atomic_add' /usr/bin/cargo test --offline
expect 66 '^watchctl: 2 hits, 2 reported, 0 lost, 1 stray' \
    /usr/bin/cargo test --offline
sed -i 's/ --error/ --allow limits::peak&/' .cargo/config.toml
expect 0 ' 0 stray' /usr/bin/cargo test --offline

cd ../systemd
mkdir units
printf '[Service]\nExecStart=/bin/true\n' > units/some.service
sed "s,/usr/bin/watchctl,$WATCHCTL," recorder@.service > units/recorder@.service
SYSTEMD_UNIT_PATH=$PWD/units: systemd-analyze verify \
    units/recorder@some.service > said 2>&1 || {
	cat said
	exit 1
}
# with these rights it attaches to a program of another user
cat > server.c <<'END_OF_C'
#include <stdio.h>
#include <unistd.h>
void *volatile session;
int main(void)
{
	puts("ready");
	fflush(stdout);
	for (;;) {
		session = (void *)&session;
		usleep(10000);
	}
}
END_OF_C
${CC:-cc} -g -o some server.c
chmod 755 "$scratch" . some
setpriv --reuid=65534 --regid=65534 --clear-groups ./some > ready &
pid=$!
until [ -s ready ]; do sleep 0.01; done
caps=$(sed -n 's/^CapabilityBoundingSet=//p' recorder@.service |
    tr A-Z a-z | sed 's/cap_/+/g; s/ /,/g')
arguments=$(sed -n 's/^ExecStart=[^ ]* //p' recorder@.service | sed "s/%i/$pid/")
# for a while, as at a server that goes on
expect 0 '^watchctl: [0-9]+ hits, 200 reported' \
    setpriv --bounding-set="-all,$caps" "$WATCHCTL" --until 'count == 201' \
    $arguments
