#!/bin/sh
# demo: watchctl at work on a running program.  Every command is shown as it
# could be typed in another terminal.
set -eu

: "${WATCHCTL:?the watchctl to show}"

show()
{
	echo
	echo "\$ $*"
}

# The victim's first line is "pid PID counter ADDRESS".
said=$(mktemp)
./victim > "$said" &
trap 'kill $! 2> /dev/null; rm -f "$said"' EXIT
until [ -s "$said" ]; do
	kill -0 $!
	sleep 0.1
done
read -r _ pid _ addr < "$said"

show ./victim \&
cat "$said"
show watchctl -w "$addr" -n 6 -p "$pid"
"$WATCHCTL" -w "$addr" -n 6 -p "$pid"
show watchctl -w counter -n 3 -p "$pid"
"$WATCHCTL" -w counter -n 3 -p "$pid"
show kill "$pid"
