#!/bin/sh
# top: --top in a real terminal: 80x24 and 40x10, resized meanwhile, stopped and
# continued, in the background, paused; ended by q, ^C, SIGTERM and with the
# program; without colours; and each time the terminal is as it was.
set -eu

. "$TOP/tests/support/needs.sh"
needs tmux
needs_breakpoints
scratch=$(mktemp -d)
cd "$scratch"
export TMUX_TMPDIR="$scratch" LC_ALL=C.UTF-8
unset TMUX
tmux()
{
	command tmux -L top -f /dev/null "$@"
}
victim=
trap 'tmux kill-server 2> /dev/null || :
    [ -z "$victim" ] || kill $victim; rm -rf "$scratch"' EXIT
cat > prog.c <<'END_OF_C'
#include <stdlib.h>
#include <unistd.h>
long total;
static void add(long v) { total += v; }
static void take(void) { total--; }
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000000;

	while (n-- > 0) {
		add(3);
		if (n % 4 == 0)
			take();
		usleep(1000);
	}
	pause();
}
END_OF_C
${CC:-cc} -g -O0 -o prog prog.c

screen()
{
	tmux capture-pane -p -t top
}
# await TEXT: until the screen has it; again, while others watch everything
await()
{
	tries=0
	until screen | grep -q -e "$1"; do
		! screen | grep -q 'no free slot' || start "$started"
		tries=$((tries + 1))
		[ $tries -lt 600 ] || {
			echo "no '$1' on:"
			screen
			exit 1
		}
		sleep 0.1
	done
}
# until watchctl has the terminal: a ^C before flushes what was typed
foreground()
{
	tty=$(tmux display-message -p -t top '#{pane_tty}')
	tries=0
	until ps -o stat=,args= -t "${tty#/dev/}" |
	    grep -q '^[^ T]*+.* --top'; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || {
			echo "it does not come to the foreground:"
			screen
			exit 1
		}
		sleep 0.1
	done
}
keys()
{
	tmux send-keys -t top "$@"
}
# start COMMAND: at the prompt
start()
{
	started=$1
	keys "clear; $started" Enter
}
# The terminal echoes and has lines, and the prompt has it.
restored()
{
	await 'ready>$'
	keys 'clear; stty -a > modes; echo "is:"back' Enter
	await 'is:back'
	grep -qw icanon modes
	absent '-icanon\|-echo \|-echo;' modes
}
# absent TEXT FILE
absent()
{
	if grep -e "$1" "$2"; then
		echo "that is in $2"
		exit 1
	fi
}
attached="$WATCHCTL --top -w total -p"

./prog & victim=$!
# without a terminal it is refused
status=0
"$WATCHCTL" --top -w total -p $victim > out 2> said < /dev/null || status=$?
[ $status -eq 125 ]
grep -q '^watchctl: --top draws on a terminal' said

tmux new-session -d -s top -x 80 -y 24 "env -u NO_COLOR PS1='ready> ' sh"
await 'ready>$'
start "$attached $victim"
await '^ *hits/s *share *threads *last value *writer'
await '[0-9]  *[78][0-9]\.[0-9]% .* total: write in add prog.c:4'
await '[0-9]  *[12][0-9]\.[0-9]% .* total: write in take prog.c:5'
# colours, and none
tmux capture-pane -e -p -t top | grep -q "$(printf '\033')\[.*3[0-7]m"
# space holds it, and lets it go on
keys Space
await 'paused'
screen > held
sleep 1
screen | diff held -
keys Space
while screen | grep -q paused; do
	sleep 0.1
done
# smaller, and larger again
tmux resize-window -t top -x 40 -y 10
await '^ *.s *share thr last val writer'
[ "$(screen | wc -l)" -le 10 ]
tmux resize-window -t top -x 80 -y 24
await '^ *hits/s *share *threads'
# stopped, at the shell's prompt, and continued
keys C-z
await 'Stopped'
restored
# in the background it leaves the terminal to the shell
keys 'bg' Enter
restored
sleep 1
screen > shell
absent 'hits/s' shell
keys 'fg' Enter
await '^ *hits/s *share *threads'
# the summary and the account follow
keys q
await 'watchctl: [0-9]* hits, [0-9]* reported, 0 lost'
await 'total: [0-9]* hits, 2 backtraces'
restored

start "$attached $victim"
await 'write in add'
keys C-c
await 'watchctl: [0-9]* hits, [0-9]* reported, 0 lost'
restored
kill -0 $victim

start "NO_COLOR=1 $attached $victim"
await 'write in add'
tmux capture-pane -e -p -t top > plain
absent "$(printf '\033')\[.*3[0-7]m" plain
keys q
restored

# killed while it draws
start "sh -c 'echo \$\$ > pid; exec $attached $victim'"
await 'write in add'
kill -TERM "$(cat pid)"
await 'watchctl: [0-9]* hits, [0-9]* reported, 0 lost'
restored

# a terminal that nobody knows: no table, and the rest as ever
start "TERM=nonesuch $attached $victim"
await 'cannot be drawn on'
keys C-z
await 'Stopped'
keys 'fg' Enter
foreground
keys C-c
await 'watchctl: [0-9]* hits, [0-9]* reported, 0 lost'
restored

# who explains is killed: the table goes on, and what is said of it waits.  It
# may have been reading a module, which is left aside then
start "sh -c 'echo \$\$ > pid; exec $attached $victim'"
await 'write in add'
for child in $(cat "/proc/$(cat pid)/task/$(cat pid)/children"); do
	kill -KILL "$child"
done
sleep 2
screen > shown
absent 'goes on' shown
keys q
await 'watchctl: [0-9]* hits, [0-9]* reported, 0 lost'
tmux capture-pane -p -S -60 -t top | tr -d '\n' |
    grep -q -e 'another one goes on' -e 'left out from here on'
restored

# a command, which q ends as ^C does
start "$WATCHCTL --top -w total -- ./prog"
await 'write in add'
keys q
await 'watchctl: [0-9]* hits, [0-9]* reported, 0 lost'
restored

# a command, all of whose writes are there when it does nothing any more
start "$WATCHCTL --top -w total -- ./prog 20"
await '^25 hits, 0/s, 2 writers'
keys C-c
await 'watchctl: 25 hits, 25 reported, 0 lost'
restored
