#!/bin/sh
# suites: examples/suite is built and run by CMake and by Meson, with what
# `bmake install` leaves; they find the stray write, and no other.
set -eu

. "$TOP/tests/support/needs.sh"
needs cmake ctest meson ninja
needs_breakpoints
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/src"
cp -a "$TOP/lib" "$TOP/watchctl" "$TOP"/Makefile* "$scratch/src"
# as a user would, whatever is made around this
env -i "PATH=$PATH" "HOME=$HOME" bmake -C "$scratch/src" \
    prefix="$scratch/usr" all install > "$scratch/log" 2>&1 || {
	cat "$scratch/log"
	exit 1
}
cp -r "$TOP/examples/suite" "$scratch"
cd "$scratch/suite"

cmake -S . -B cmake -DCMAKE_PREFIX_PATH="$scratch/usr"
cmake --build cmake
ctest --test-dir cmake -V > "$scratch/ctest" || {
	cat "$scratch/ctest"
	exit 1
}
grep '1x  reset_cache  .*/config_test\.c:19  g_config ' "$scratch/ctest"

meson setup meson
wrapper="$scratch/usr/bin/watchctl -w g_config --allow config_load"
meson test -C meson --wrapper "$wrapper --error-exitcode 66 --"
# without it nobody sees the write
if meson test -C meson reset; then
	echo "reset fails without watchctl, too"
	exit 1
fi
