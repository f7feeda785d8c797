#!/bin/sh
# recipes: the examples for pytest, cargo test, systemd and containers do what
# they are for: a stray write fails the tests and is named, others do not; the
# recorder's unit is right; it and the container have the rights that they need.
set -eu

. "$TOP/tests/support/needs.sh"
needs /usr/bin/python3 /usr/bin/cargo /usr/bin/systemd-analyze setpriv runc
needs_breakpoints
/usr/bin/python3 -c 'import pytest' || not_run 'pytest is not here'
[ "$(id -u)" -eq 0 ] || not_run 'this is not root'
scratch=$(mktemp -d)
pids=
trap '[ -z "$pids" ] || kill -KILL $pids || :; rm -rf "$scratch"' EXIT
cd "$scratch"
for example in pytest cargo systemd container; do
	cp -r "$TOP/examples/$example" .
done
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

# await COMMAND...: until it succeeds, for a minute at most
await()
{
	end=$(($(date +%s) + 60))
	until "$@" 2> /dev/null; do
		[ "$(date +%s)" -lt $end ] || {
			echo "$*: not for a minute"
			[ ! -f ran ] || cat ran
			exit 1
		}
		sleep 0.01
	done
}

# Whether the capabilities are enough here, which Debian's kernels refuse.
enough()
{
	level=$(cat /proc/sys/kernel/perf_event_paranoid)
	[ "$level" -gt 2 ] || return 0
	echo "$*: not tried: kernel.perf_event_paranoid is $level"
	return 1
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
pids=$!
await test -s ready
caps=$(sed -n 's/^CapabilityBoundingSet=//p' recorder@.service |
    tr A-Z a-z | sed 's/cap_/+/g; s/ /,/g')
arguments=$(sed -n 's/^ExecStart=[^ ]* //p' recorder@.service |
    sed "s/%i/$pids/")
# for a while, as at a server that goes on
if enough systemd; then
	expect 0 '^watchctl: [0-9]+ hits, 200 reported' \
	    setpriv --bounding-set="-all,$caps" "$WATCHCTL" \
	    --until 'count == 201' $arguments
fi

cd ../container
${CC:-cc} -g -o server server.c
container=$scratch/container
# contained CAPABILITIES FILTER COMMAND...: in a container of this machine's
# files
cat > contained << 'END_OF_SH'
#!/bin/sh
set -eu
rm -f config.json
runc spec
python3 - "$@" << 'END_OF_PYTHON'
import json, sys
capabilities, seccomp, *command = sys.argv[1:]
with open("config.json") as file:
    spec = json.load(file)
process = spec["process"]
process.update(terminal=False, args=command, rlimits=[], noNewPrivileges=False)
for held in process["capabilities"]:
    process["capabilities"][held] = ["CAP_" + c for c in capabilities.split()]
spec["root"] = {"path": "root", "readonly": True}
spec["mounts"] = [m for m in spec["mounts"] if m["type"] != "cgroup"]
linux = spec["linux"]
linux.pop("resources", None)
linux["namespaces"] = [n for n in linux["namespaces"] if n["type"] != "cgroup"]
with open(seccomp) as file:
    linux["seccomp"] = json.load(file)
with open("config.json", "w") as file:
    json.dump(spec, file)
END_OF_PYTHON
mkdir -p root
mount --make-rprivate /
mount --rbind / root
exec runc --root "$CONTAINER/state" run --pid-file server.pid "watchctl-$$"
END_OF_SH
CONTAINER=$container
export CONTAINER WATCHCTL
held=$(sed -n 's/^ *cap_add: \[\(.*\)\]/\1/p' compose.yaml | tr -d ,)
in_container='unshare -m sh contained'
watch=$(sed -n 's/^ *command: watchctl //p' compose.yaml |
    sed "s,server,$PWD/&,")
$in_container '' seccomp.json /bin/true > ran 2>&1 || {
	echo 'container: not tried: runc cannot start here'
	cat ran
	exit 0
}
sed 's/"acct"/&, "perf_event_open"/' seccomp.json > refused.json
if enough container; then
	expect 0 'delivered by BPF$' \
	    $in_container "$held" seccomp.json "$WATCHCTL" $watch
	expect 0 '^watchctl: 5 hits, 5 reported, 0 lost' \
	    $in_container "$held" seccomp.json "$WATCHCTL" $watch
	expect 125 'container seccomp filters do' \
	    $in_container "$held" refused.json "$WATCHCTL" $watch
fi
# watched from outside, it needs none
sed -i 's/to < 16/to < 3000/' server.c
${CC:-cc} -g -o server server.c
rm -f server.pid
$in_container '' refused.json "$PWD/server" > ran 2>&1 &
serves()
{
	server=$(cat server.pid) && grep -q server "/proc/$server/cmdline"
}
await serves
pids="$pids $server"
expect 0 '^#3   write  limit ' "$WATCHCTL" -w limit -n 3 -p "$server"
