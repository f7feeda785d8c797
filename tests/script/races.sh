#!/bin/sh
# races: the library, built with a sanitizer for threads, while threads of a
# program open and close watches and are hit.
set -eu

. "$TOP/tests/support/needs.sh"
needs_breakpoints
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cd "$TOP/lib/watchpoint"
if ! echo 'int main(void) { return 0; }' |
    cc -fsanitize=thread -x c -o "$scratch/probe" - 2>/dev/null ||
    ! "$scratch/probe"; then
	not_run 'no program can be built, or run, with -fsanitize=thread here'
fi
# shellcheck disable=SC2046
cc -g -O1 -std=c11 -fsanitize=thread -pthread -D_GNU_SOURCE \
    -DVERSION='"0"' -I. -I../explain -o "$scratch/races" \
    "$TOP/tests/victim/races.c" \
    $(find . -name '*.c' ! -name '*_aarch64.c')
for delivery in sigtrap; do
	WATCHPOINT_HELPER='' WATCHPOINT_DELIVERY=$delivery \
	    TSAN_OPTIONS='halt_on_error=0 exitcode=66' "$scratch/races"
done
