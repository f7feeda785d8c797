#!/bin/sh
# install: what `bmake install` leaves is complete and can be built against;
# the shared library needs libc alone and shows nothing but wp_*.
set -eu

dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT
MAKEFLAGS='' bmake -C "$TOP" install DESTDIR="$dest" prefix=/opt > /dev/null

cd "$dest/opt"
ls bin/watchctl lib/libwatchpoint.a share/man/man1/watchctl.1 \
    share/man/man3/libwatchpoint.3

readelf -d lib/libwatchpoint.so > dynamic
grep 'SONAME.*\[libwatchpoint\.so\.0\]' dynamic
[ "$(grep -c NEEDED dynamic)" = "$(grep -c 'NEEDED.*\[libc\.so' dynamic)" ]
nm -D --defined-only lib/libwatchpoint.so > symbols
grep ' T wp_cause_name@' symbols
[ -z "$(grep -v ' wp_\| A LIBWATCHPOINT_' symbols)" ]

export PKG_CONFIG_SYSROOT_DIR="$dest" PKG_CONFIG_PATH="$dest/opt/lib/pkgconfig"
cflags=$(pkg-config --cflags watchpoint)
libs=$(pkg-config --libs watchpoint)
for header in include/watchpoint/*.h; do
	echo "#include <${header##*/}>" |
	    $CC -Wall -Werror $cflags -fsyntax-only -x c -
done
cat > user.c <<EOF
#include <cause.h>
int main(void) { return wp_cause_name(WP_CAUSE_NONE) == 0; }
EOF
$CC -o user $cflags user.c $libs
LD_LIBRARY_PATH=lib ./user
