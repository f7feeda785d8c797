#!/bin/sh
# deb: the Debian packages are what lintian wants; installed, they do the main
# job; removed, they leave nothing.  They are installed in a copy of this
# system's files that is thrown away.
set -eu

. "$TOP/tests/support/needs.sh"
needs git dpkg-buildpackage dh lintian
git -C "$TOP" rev-parse HEAD > /dev/null 2>&1 || not_run "no git repository"

# as a user would, whatever is made around this
plain()
{
	env -i "PATH=$PATH" "HOME=$HOME" "$@"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git clone -q "$TOP" "$scratch/src"
cd "$scratch/src"
plain bmake deb > "$scratch/log" 2>&1 || {
	cat "$scratch/log"
	exit 1
}
mv watchctl-*.tar.gz first
plain bmake dist > /dev/null
cmp first watchctl-*.tar.gz
lintian --fail-on error,warning --allow-root packages/*.changes
# the library for 32-bit programs, where there is one
if [ -e "$TOP/lib/narrow/libwatchpoint.so.0" ]; then
	dpkg-deb -x packages/lib32watchpoint0_*.deb narrow
	readelf -h narrow/usr/lib32/libwatchpoint.so.0 | grep 'ELF32'
	dpkg-deb -x packages/watchctl_*.deb narrow
	grep -a -o '/usr/lib32/libwatchpoint.so.0' narrow/usr/bin/watchctl
else
	[ ! -e packages/lib32watchpoint0_*.deb ]
fi
needs_breakpoints

cat > "$scratch/try.c" <<'END'
#include <watchpoint.h>

long word;

int
main(void)
{
	WP_WATCH(word);
	word = 1;
	return 0;
}
END
cat > "$scratch/try.sh" <<'END'
set -eu
cd /tmp
dpkg -i packages/*_amd64.deb
cc -g -o try try.c $(pkg-config --cflags --libs watchpoint)
./try 2>&1 | grep 'main  *try\.c:9$'
watchctl -w word --user-only -- /tmp/try 2>&1 |
    grep '^watchctl: 1 hit, 1 reported'
watchctl -w word --inside -- ./try 2>&1 | grep '^watchctl: .* 0 lost'
if [ -e /usr/lib32/libwatchpoint.so ]; then
	cc -m32 -g -o try32 try.c -lwatchpoint
	./try32 2>&1 | grep 'main  *try\.c:9$'
	watchctl -w word --inside -- ./try32 2>&1 |
	    grep '^watchctl: .* 0 lost'
fi
man -w watchctl libwatchpoint
ls /usr/share/bash-completion/completions/watchctl \
    /usr/share/zsh/vendor-completions/_watchctl \
    /usr/share/fish/vendor_completions.d/watchctl.fish
dpkg --purge $(for deb in packages/*_amd64.deb; do
	dpkg-deb -f $deb Package
done)
END
cat > "$scratch/enter.sh" <<'END'
set -eu
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" \
    "$1/root" || exit 77
for dir in proc dev sys; do
	mount --rbind "/$dir" "$1/root/$dir"
done
mount -t tmpfs tmpfs "$1/root/tmp"
cp -r "$2/src/packages" "$2/try.c" "$2/try.sh" "$1/root/tmp"
chroot "$1/root" sh -e /tmp/try.sh
cd "$1/upper"
find . -type f ! -path './var/lib/dpkg/*' ! -path './var/log/*' \
    ! -path './var/cache/*' ! -path './etc/ld.so.cache' ! -path './root/*' \
    > "$2/left"
END
mkdir "$scratch/machine"
status=0
unshare -m sh "$scratch/enter.sh" "$scratch/machine" "$scratch" || status=$?
[ $status -ne 77 ] || not_run "no overlay can be mounted here"
[ $status -eq 0 ]
[ ! -s "$scratch/left" ] || {
	echo "left behind:"
	cat "$scratch/left"
	exit 1
}
