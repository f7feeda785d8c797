#!/bin/sh
# completion: the help, the manual and completion have the same options; words
# are completed by what the rest of the command line says, and a name that a
# shell would not take for text is left out; the shells' scripts agree.
#
# With THOROUGH, zsh and fish are tried, too, and a program of many symbols.
set -eu

scratch=$(mktemp -d)
sleeper=
trap 'rm -rf "$scratch"; [ -z "$sleeper" ] || kill $sleeper' EXIT
export LC_ALL=C
cd "$scratch"

# same WHAT FILE: it is as the help has it
same()
{
	diff help "$2" || {
		echo "the help (<) and $1 (>) differ"
		exit 1
	}
}
manual=$TOP/watchctl/watchctl.1
"$WATCHCTL" --help | sed -n 's/^  \(-.*\)/\1/p' |
    sed 's/  .*//; s/, / /; s/\[=.*//' |
    tr ' ' '\n' | grep -e '^-' | grep -vx -e -h -e -V | sort > help
sed -n '/^\.Sh DESCRIPTION/,/^\.El/s/^\.It Fl //p' "$manual" |
    sed 's/^[hV] , //; s/ .*//; s/^/-/' | sort -u > manual
same 'the manual' manual
for begin in - --; do
	"$WATCHCTL" __complete 1 watchctl $begin
	"$WATCHCTL" __complete 2 watchctl report $begin f
done | sort -u > completed
same completion completed
sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/p' "$manual" |
    sed '1d; $d' > synopsis
"$WATCHCTL" __synopsis | diff - synopsis || {
	echo "the table (<) and the manual's synopsis (>) differ:" \
	    "bmake -C watchctl synopsis"
	exit 1
}

cat > program.cc <<'PROGRAM'
#include <unistd.h>
namespace store { int capacity; int count; template <class T> T kept; }
extern "C" {
	int config_limit, config_port;
	static int config_static;
	int hostile;
	int config_read(void) { return config_static++; }
}
int main()
{
	store::kept<long> = 1;
	pause();
	return hostile + config_read();
}
PROGRAM
$CXX -g -O0 -o plain program.cc
objcopy --redefine-sym 'hostile=config_$(reboot)' plain 'a program'
nm 'a program' | grep -F 'config_$(reboot)'
cp 'a program' watched_program

# complete WANTED INDEX WORD...: these are the candidates, and nothing else is
# said
complete()
{
	wanted=$1
	shift
	got=$("$WATCHCTL" __complete "$@" 2>&1 | xargs)
	[ "$got" = "$wanted" ] || {
		echo "$*: '$got' instead of '$wanted'"
		exit 1
	}
}
complete 'doctor report' 1 watchctl ''
complete '-o' 2 watchctl doctor ''
complete 'json' 3 watchctl doctor -o j
complete '--each --error-exitcode --every --exe --explain-memory' 1 watchctl --e
complete '--each --error-exitcode --every --explain-memory' 2 \
    watchctl report --e
complete '--if-missing' 1 watchctl --if-m -- ./watched_program
complete '' 2 watchctl -p1 --if-m
complete 'summary summary,json' 2 watchctl -o su
complete '--on-hit=pause' 1 watchctl --on-hit=p
complete 'config_limit config_port config_static' 2 \
    watchctl -w con -- './a program'
complete 'config_read' 2 watchctl -x con ./watched_program
complete 'store::capacity store::count' 1 -w store::c -- ./watched_program
complete 'store::capacity store::count' 2 \
    watchctl -w store:: -- ./watched_program
complete '-wconfig_port' 2 watchctl -f -wconfig_p -- ./watched_program
complete '' 4 watchctl -w x ./watched_program con
complete '' 2 watchctl -w con -- ./no_program
complete '' 2 watchctl -w con -- ./program.cc
# a name may look like something else: a number, a list, the root of a family
for name in 87654321 watched_pr,1 @watched watched_program; do
	[ -e "$name" ] || ln watched_program "$name"
	"./$name" &
	sleeper="$sleeper $!"
	until [ "$(cat /proc/$!/comm)" = "$name" ]; do sleep 0.01; done
done
complete '' 2 watchctl -p 8765432
complete '@CHILDREN:' 2 watchctl -p @
complete 'watched_program' 2 watchctl -p watched_pr
complete 'me,watched_program' 2 watchctl -p me,watched_pr
complete 'config_port' 4 watchctl -p watched_program -w config_p
complete 'config_port' 2 watchctl -w config_p -p $!
complete 'watched_program!config_port' 2 watchctl -w 'watched_program!config_p' \
    -p $!

# agree SHELL: it has the candidates
agree()
{
	grep -xE 'config_.*|store::count|--every' | sort -u > "$1.got"
	printf '%s\n' config_limit config_port config_static store::count \
	    --every | sort | diff - "$1.got" || {
		echo "$1 has other candidates"
		exit 1
	}
}
PATH=$(dirname "$WATCHCTL"):$PATH
dir=$TOP/watchctl/completion
bash -ec '. "$1/watchctl"
	COMP_WORDS=(watchctl -w \"con -- "./a program") COMP_CWORD=2
	_watchctl
	printf "%s\n" "${COMPREPLY[@]}"
	COMP_WORDS=(watchctl --ev) COMP_CWORD=1
	_watchctl
	printf "%s\n" "${COMPREPLY[@]}"
	COMP_WORDS=(watchctl -w -- ./watched_program) COMP_CWORD=2
	COMP_LINE="watchctl -w  -- ./watched_program" COMP_POINT=12
	_watchctl
	printf "%s\n" "${COMPREPLY[@]}"' bash "$dir" | agree bash
[ -n "${THOROUGH:-}" ] || exit 0

cat > try.zsh <<'ZSH'
compadd() { shift; print -l -- $@ }
_call_program() { shift; eval "$@" }
_normal() { print -l -- "$words[CURRENT]" }
try() { () { source $1 } $dir/_watchctl }
words=(watchctl -w con -- './a\ program') CURRENT=3
try
words=(watchctl -w '' -- ./watched_program) CURRENT=3
try
words=(watchctl -w x -- --every) CURRENT=5
try
ZSH
dir=$dir zsh -f try.zsh | agree zsh
cat > try.fish <<'FISH'
source $argv[1]
complete -C "watchctl -p watched_program -w config_"
complete -C "watchctl -p watched_program -w store::"
complete -C "watchctl -w x -- watchctl --ev"
FISH
fish --no-config try.fish "$dir/watchctl.fish" | agree fish

awk 'BEGIN {
	print ".data"
	for (i = 100000; i < 400000; i++)
		printf ".globl many_%d\n.type many_%d,@object\n" \
		    ".size many_%d,1\nmany_%d: .byte 1\n", i, i, i, i
	print ".section .note.GNU-stack"
}' > many.s
echo 'int main(void) { return 0; }' > main.c
$CC -o many many.s main.c
[ "$("$WATCHCTL" __complete 2 watchctl -w many_ -- ./many | wc -l)" -eq 300000 ]
