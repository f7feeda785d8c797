#!/bin/sh
# systems: what is built on other systems than this one.  On what is not Linux,
# on another processor, and without a decoder of instructions the build ends
# with a line that says so.  On Debian 11, which has no such decoder,
# libwatchpoint is built alone, without a warning; on Debian 13 everything is,
# by its gcc and its clang.
#
# They are made by debootstrap, which needs root and the package mirror that apt
# is configured with.  SYSTEMS chooses some.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

. "$TOP/tests/support/needs.sh"

# says TEXT COMMAND...: it fails, and its first line has the text
says()
{
	text=$1
	shift
	if "$@" > "$scratch/log" 2>&1 ||
	    ! head -n 1 "$scratch/log" | grep -q "$text"; then
		cat "$scratch/log"
		echo "not said in the first line: $text"
		exit 1
	fi
}

(cd "$TOP" && tar -cf - --exclude='*.[oad]' --exclude='*.so*' --exclude=obj.* \
    lib watchctl Makefile*) > "$scratch/src.tar"
mkdir "$scratch/src"
tar -C "$scratch/src" -xf "$scratch/src.tar"
plain="env -i PATH=$PATH HOME=$HOME bmake -C $scratch/src"
says 'need Linux: FreeBSD' $plain SYSTEM=FreeBSD
says 'breakpoints of riscv64' $plain MACHINE=riscv64
says 'libzydis-dev' $plain/lib/explain CC='cc -nostdinc'

[ "$(id -u)" -eq 0 ] || not_run "root is needed for other systems"
needs debootstrap
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Origin: Debian' | grep -v security | sort -u | head -n 1)
[ -n "$mirror" ] || not_run "apt is configured with no mirror of Debian"

# root SUITE PACKAGE...: it is in $scratch/SUITE, with what is to be built
root()
{
	suite=$1
	shift
	debootstrap --variant=minbase --include="$(echo "$@" | tr ' ' ,)" \
	    "$suite" "$scratch/$suite" "$mirror" > "$scratch/log" 2>&1 || {
		tail -n 3 "$scratch/log"
		not_run "$suite cannot be had from $mirror"
	}
	mkdir "$scratch/$suite/src"
	tar -C "$scratch/$suite/src" -xf "$scratch/src.tar"
}

# inside SUITE COMMAND: in a root, in /src
inside()
{
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
	    chroot "$scratch/$1" sh -ec "cd /src; $2" > "$scratch/log" 2>&1 || {
		cat "$scratch/log"
		echo "$1: $2"
		exit 1
	}
}

for suite in ${SYSTEMS:-bullseye trixie}; do
	case $suite in
	bullseye)
		root $suite bmake gcc libc6-dev
		inside $suite 'bmake -C lib/watchpoint WERROR=yes'
		says 'libzydis-dev' env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		    chroot "$scratch/$suite" bmake -C /src/lib/explain
		;;
	*)
		root $suite bmake gcc clang libc6-dev libdw-dev libelf-dev \
		    zlib1g-dev libdeflate-dev libzydis-dev libiberty-dev \
		    libseccomp-dev libncurses-dev
		inside $suite 'bmake WERROR=yes'
		inside $suite 'bmake -C lib clean; bmake -C watchctl clean;
		    bmake WERROR=yes CC=clang'
		;;
	esac
	echo "$suite: built"
	rm -rf "${scratch:?}/$suite"
done
