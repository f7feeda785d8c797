#!/bin/sh
# matrix: what works on which kernel and processor, tried in guests that qemu
# emulates.  The kernels are Debian's; tests/matrix has what is tried in a
# guest.  What came of it is a table, written to $SUPPORT, docs/support.md, if
# at least six guests booted: else it would say less than the one that is there.
#
# It needs the package mirror that apt is configured with, which has more
# releases than the one that is installed.  What is taken from it is kept in
# obj.matrix, and checked by apt, each time: it is signed.  A kernel that the
# mirror has not got is told as not run, and with fewer than six of them the
# whole; but if it has them, six have to boot.
#
# QUICK, of `bmake verify`: the libraries' own tests are run by the oldest
# kernel of each processor only; what fails is tried three times, since
# emulation errs now and then; and what fails on a kernel that docs/support.md
# does not have yet, as the newest release brings them, is told only.  KERNELS
# and PROCESSORS choose some.
set -eu

here=$TOP/tests/matrix
work=$TOP/obj.matrix
kernels=${KERNELS:-'bullseye bookworm trixie sid'}
processors=${PROCESSORS:-'amd64 arm64'}

. "$TOP/tests/support/needs.sh"

needs qemu-system-x86_64 qemu-system-aarch64 busybox clang ld.lld llvm-ar

# --- the mirror ---

# With its lists as it has read them, also where containers leave them out.
kept='-o Dir::Cache::pkgcache=pkgcache.bin
    -o Dir::Cache::srcpkgcache=srcpkgcache.bin'

# A state of apt's own: nothing of it is the machine's.
apt_state()
{
	mirror=$(apt-get indextargets --format '$(REPO_URI)' \
	    'Created-By: Packages' 'Origin: Debian' | grep -v security |
	    sort -u | head -n 1)
	[ -n "$mirror" ] || not_run "apt is configured with no mirror of Debian"
	mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial"
	: > "$work/apt/status"
	: > "$work/apt/sources.list"
	for suite in $kernels; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
	done > "$work/apt/sources.list"
	cat > "$work/apt/conf" <<-END
	Dir::State::lists "$work/apt/lists";
	Dir::State::status "$work/apt/status";
	Dir::Cache "$work/apt";
	Dir::Etc::sourcelist "$work/apt/sources.list";
	Dir::Etc::sourceparts "/dev/null";
	APT::Architectures { "amd64"; "arm64"; };
	APT::Sandbox::User "root";
	Acquire::Retries "2";
	Acquire::http::Timeout "30";
	Acquire::https::Timeout "30";
	END
	export APT_CONFIG="$work/apt/conf"
	# a release that it has not got is reported below
	timeout 180 apt-get -q $kept update || :
	[ -n "$(find "$work/apt/lists" -name '*_Packages*')" ] ||
	    not_run "the package mirror cannot be had"
}

# download FOLDER PACKAGE...: a mirror that does not answer is not asked again
stuck=
download()
{
	[ -z "$stuck" ] || return 1
	mkdir -p "$1"
	came=0
	(cd "$1" && shift && timeout 300 apt-get -q $kept download "$@") ||
	    came=$?
	[ $came -ne 124 ] || stuck=yes
	return $came
}

# What a package of a release depends on, by a pattern: VERSION-SUITE-PACKAGE...
depends()
{
	apt-cache $kept show "$1" |
	    sed -n '/^Depends:/{s/^Depends: //; s/([^)]*)//g; s/[, ]\+/\n/g; p; q}' |
	    grep "$2"
}

# The image of a release's kernel is kernel.SUITE.PROCESSOR.  What keeps it from
# that is said.
kernel()
{
	suite=$1 processor=$2
	image=$work/kernel.$suite.$processor
	name=$(depends "linux-image-cloud-$processor:$processor/$suite" \
	    '^linux-image-[0-9]') || {
		echo "the mirror has no such release"
		return
	}
	debs=$work/debs.$processor.$name
	[ ! -f "$debs/vmlinuz" ] || {
		ln -sf "$debs/vmlinuz" "$image"
		return
	}
	# newer ones have the image in a package that this one depends on
	binary=$(depends "$name:$processor" '^linux-binary-') || binary=
	for package in $name $binary; do
		download "$debs" "$package:$processor" > "$debs.log" 2>&1 || {
			echo "$package cannot be downloaded"
			return
		}
		dpkg-deb --fsys-tarfile "$debs/$package"_*.deb | tar -xf - -C \
		    "$debs" --wildcards '*/vmlinuz*' 2> /dev/null || :
	done
	find "$debs" -type f -name 'vmlinuz*' -exec mv {} "$debs/vmlinuz" \;
	[ -f "$debs/vmlinuz" ] && ln -sf "$debs/vmlinuz" "$image" ||
	    echo "it has no image"
}

# --- what is tried ---

# tests that compile or run what a guest has not got, that emulation takes a
# minute for, or that are about how soon another process does something
left_out=' debug_info_test debug_names_test declared_object_test explain_test
gdb_index_test history_test index_test module_test perfdata_test proc_test
ptrace_test stack_test sweep_test symbol_test unwind_test '

# The tests without breakpoints of the rooms of a library.
pure()
{
	for source in "$TOP"/tests/unit/*/*_test.c; do
		room=$(basename "$(dirname "$source")")
		[ -d "$TOP/lib/$1/$room" ] || continue
		case $left_out in
		*[[:space:]]"$(basename "$source" .c)"[[:space:]]*) ;;
		*) echo "$source" ;;
		esac
	done
}

# The root of a guest: ROOT BUSYBOX.  Only tests that cancel threads find what
# is in /gcc: everything else has to do without libgcc_s.so.1.
common_root()
{
	rm -rf "$1"
	mkdir -p "$1/bin" "$1/usr/bin" "$1/lib" "$1/gcc" \
	    "$1/tests/watchpoint" "$1/tests/explain"
	cp "$2" "$1/bin/busybox"
	cp "$here/init" "$here/jobs.sh" "$here/rows" "$1"
	chmod 755 "$1/init"
}

# From the root to what the guest starts with.
packed()
{
	(cd "$1" && find . | busybox cpio -o -H newc 2> /dev/null) > "$1.cpio"
}

# A program of i386, where the compiler makes such, and what it needs: the library
# is where watchctl looks for it, beside itself.
narrow_programs()
{
	[ -x "$TOP/tests/victim/narrow_libc" ] || return 0
	[ -e "$TOP/lib/narrow/libwatchpoint.so.0" ] || return 0
	cp "$TOP/tests/victim/narrow_libc" "$root/bin"
	mkdir -p "$root/lib/i386-linux-gnu" "$root/usr/lib32"
	cp "$TOP/lib/narrow/libwatchpoint.so.0" "$root/lib/i386-linux-gnu"
	cp -L "$(cc -m32 -print-file-name=ld-linux.so.2)" "$root/lib"
	cp -L "$(cc -m32 -print-file-name=libc.so.6)" "$root/usr/lib32"
}

flags="-g -O1 -std=c11 -pthread -D_GNU_SOURCE -I$TOP/lib/watchpoint
    -I$TOP/lib/explain -I$TOP/tests/support"

amd64_root()
{
	root=$work/amd64
	common_root "$root" "$(command -v busybox)"
	cp "$TOP/watchctl/watchctl" "$TOP/watchctl/watchctl-explain" \
	    "$TOP/tests/victim/counter" "$TOP/tests/victim/acts" "$root/bin"
	mkdir -p "$root/lib/watchctl"
	cp "$TOP/lib/heapguard/libwatchpoint-heap.so" "$root/lib/watchctl"
	cp "$(command -v setpriv)" "$root/usr/bin"
	cp "$TOP/lib/watchpoint/libwatchpoint.so.0" "$root/lib"
	narrow_programs
	# shellcheck disable=SC2086
	cc $flags -o "$root/bin/truth" "$here/truth.c" \
	    "$TOP/lib/watchpoint/libwatchpoint.a"
	cc $flags -O2 -w -o "$root/bin/overflow" "$here/overflow.c"
	cc $flags -O2 -no-pie -w -o "$root/bin/family" "$here/family.c"
	cc $flags -O2 -w -o "$root/bin/tails" "$here/tails.c"
	cc $flags -O2 -w -g0 -o "$root/bin/tails_bare" "$here/tails.c"
	for library in watchpoint explain; do
		for source in $(pure $library); do
			cp "$TOP/tests/$(basename "$source" .c)" \
			    "$root/tests/$library"
		done
	done
	for file in $(find "$root" -type f -perm -1 -exec ldd {} + \
	    2> /dev/null | grep -o '/[^ ]*\.so[^ :]*$\|/[^ ]*\.so[^ ]* ' |
	    sort -u); do
		mkdir -p "$root/$(dirname "$file")"
		cp -L "$file" "$root/$file"
	done
	cp -L "$(cc -print-file-name=libgcc_s.so.1)" "$root/gcc"
	packed "$root"
}

# What programs for arm64 link, from the same release as here.
arm64_system()
{
	system=$work/arm64.system
	release=$(. /etc/os-release && echo "$VERSION_CODENAME")
	packages=
	for name in libc6 libc6-dev linux-libc-dev libgcc-s1 \
	    "libgcc-$(cc -dumpversion)-dev" libcmocka0 libcmocka-dev \
	    libjansson4 libjansson-dev libdw1 libdw-dev libelf1 libelf-dev \
	    zlib1g zlib1g-dev liblzma5 libbz2-1.0 libdeflate0 libdeflate-dev \
	    libcapstone4 libcapstone-dev libiberty-dev libseccomp2 \
	    libseccomp-dev libncursesw6 libtinfo6 libncurses-dev util-linux \
	    libcap-ng0 busybox-static; do
		packages="$packages $name:arm64/$release"
	done
	# shellcheck disable=SC2086
	download "$work/debs.arm64" $packages || return
	rm -rf "$system"
	mkdir -p "$system/usr/lib" "$system/usr/bin"
	ln -s usr/lib "$system/lib"
	ln -s usr/bin "$system/bin"
	for deb in "$work"/debs.arm64/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" |
		    tar -xf - -C "$system" --keep-directory-symlink
	done
}

# The libraries that a program of the system links: PROGRAM
arm64_needs()
{
	for name in $(llvm-readelf --needed-libs "$1" | grep '\.so'); do
		[ ! -e "$root/lib/$name" ] || continue
		cp -L "$(find -L "$system/lib" -name "$name" | head -n 1)" \
		    "$root/lib"
		arm64_needs "$root/lib/$name"
	done
}

# what is about registers and code of x86-64
of_x86=' cfi_test expr_test effect_test flow_test insn_test hot_stack_test stack_cache_test
sample_group_test syscall_test uprobe_place_test '

# The whole, and its tests.
arm64_root()
{
	root=$work/arm64
	common_root "$root" "$system/bin/busybox"
	cross="clang --target=aarch64-linux-gnu --sysroot=$system
	    -fuse-ld=lld -Wno-unused-command-line-argument"
	mkdir -p "$work/arm64.build"
	# what has another place now is not to be found in its old one
	find "$work/arm64.build" -name '*.[ch]' -delete
	(cd "$TOP" && tar -cf - --exclude='*.[oad]' --exclude='*.so*' \
	    --exclude=watchctl/watchctl --exclude=watchctl/watchctl-explain \
	    lib watchctl Makefile*) | tar -xf - -C "$work/arm64.build"
	for part in lib/watchpoint lib/explain lib/heapguard watchctl; do
		env -i "PATH=$PATH" "HOME=$HOME" bmake -j2 \
		    -C "$work/arm64.build/$part" MACHINE=aarch64 \
		    MACHINE_ARCH=aarch64 CC="$(echo $cross)" LD=ld.lld \
		    AR=llvm-ar RANLIB=llvm-ranlib OBJCOPY=llvm-objcopy \
		    WERROR=yes > "$work/arm64.log" 2>&1 || {
			cat "$work/arm64.log"
			return 1
		}
	done
	cp "$work/arm64.build/watchctl/watchctl" \
	    "$work/arm64.build/watchctl/watchctl-explain" "$root/bin"
	cp "$system/usr/bin/setpriv" "$root/usr/bin"
	archive=$work/arm64.build/lib/watchpoint/libwatchpoint.a
	explain="$work/arm64.build/lib/explain/libexplain.a"
	cp "$work/arm64.build/lib/watchpoint/libwatchpoint.so.0" "$root/lib"
	mkdir -p "$root/lib/watchctl"
	cp "$work/arm64.build/lib/heapguard/libwatchpoint-heap.so" \
	    "$root/lib/watchctl"
	$cross $flags -o "$root/bin/truth" "$here/truth.c" "$archive"
	for victim in counter acts; do
		$cross $flags -O2 -no-pie -rdynamic -w \
		    -o "$root/bin/$victim" \
		    "$TOP/tests/victim/$victim.c"
	done
	$cross $flags -o "$root/bin/forms" "$here/forms_aarch64.c"
	clang --target=arm-linux-gnueabihf -march=armv7-a -marm -O1 -g -static \
	    -nostdlib -fuse-ld=lld -o "$root/bin/narrow_arm" \
	    "$here/narrow_arm.c"
	$cross $flags -O2 -w -o "$root/bin/overflow" "$here/overflow.c"
	$cross $flags -O2 -no-pie -w -o "$root/bin/family" "$here/family.c"
	$cross $flags -O2 -w -o "$root/bin/tails" "$here/tails.c"
	$cross $flags -O2 -w -g0 -o "$root/bin/tails_bare" "$here/tails.c"
	(cd "$work/arm64.build" && rm -f ./*.o support.a &&
	    $cross $flags -c "$TOP"/tests/support/*.c &&
	    llvm-ar cq support.a ./*.o)
	for library in watchpoint explain; do
		for source in $(pure $library); do
			name=$(basename "$source" .c)
			case $of_x86 in
			*[[:space:]]"$name"[[:space:]]*) continue ;;
			esac
			$cross $flags -rdynamic \
			    -o "$root/tests/$library/$name" "$source" \
			    "$work/arm64.build/support.a" "$explain" "$archive" \
			    -ldw -lelf -lz -ldeflate -lcapstone -liberty \
			    -lcmocka -ljansson
		done
	done
	cp -L "$system/lib/ld-linux-aarch64.so.1" "$root/lib"
	for file in "$root"/bin/* "$root"/usr/bin/* "$root"/tests/*/*; do
		arm64_needs "$file"
	done
	cp -L "$(find "$system" -name libgcc_s.so.1 | head -n 1)" "$root/gcc"
	packed "$root"
}

# --- guests ---

# What a guest is told on its kernel's command line (jobs.sh): SUITE
told()
{
	[ -n "${QUICK:-}" ] || {
		echo matrix.tries=1
		return
	}
	echo matrix.tries=3
	[ "$1" = "${kernels%% *}" ] ||
	    echo matrix.left_out=pure_watchpoint,pure_explain
}

# One that writes nothing within $PATIENCE seconds is ended.
start()
{
	: > "$said"
	timeout --foreground -k 5 1800 $emulator -accel tcg -smp 2 -m 768 -display none \
	    -nodefaults -monitor none -serial "file:$said" -no-reboot \
	    -kernel "$work/kernel.$suite.$processor" \
	    -initrd "$work/$processor.cpio" \
	    -append "console=$console panic=-1 quiet loglevel=3 $(told $suite |
	    tr '\n' ' ')" < /dev/null &
	guest=$!
	for second in $(seq "${PATIENCE:-300}"); do
		grep -aq '^@=kernel' "$said" && break
		kill -0 $guest 2> /dev/null || break
		sleep 1
	done
	grep -aq '^@=kernel' "$said" || kill $guest 2> /dev/null || :
	wait $guest || :
	sed -i 's/\r//g' "$said"
	grep -aq '^@=kernel' "$said"
}

# Boot one: what it writes goes to the file guest.SUITE.PROCESSOR.  The emulator
# hangs at a boot now and then: it has a second try.
boot()
{
	suite=$1 processor=$2
	case $processor in
	amd64) emulator='qemu-system-x86_64 -cpu max' console=ttyS0 ;;
	arm64)
		emulator='qemu-system-aarch64 -M virt -cpu cortex-a72'
		console=ttyAMA0
		;;
	esac
	said=$work/guest.$suite.$processor
	start || {
		echo "$suite $processor: it did not boot, and is started once more"
		grep -a . "$said" | tail -n 5
		start
	} || :
	echo "$suite $processor: $(grep -ac '^@.*|ok|$' "$said") ok, $(grep -ac \
	    '^@.*|failed|' "$said") failed"
	grep -a -e '^@.*|failed|' -e '^    ' "$said" || :
}

# --- all of it ---

[ "${1:-}" != boot ] || {
	boot "$2" "$3"
	exit
}

mkdir -p "$work"
rm -f "$work"/guest.* "$work"/why.* "$work"/kernel.*
apt_state
for suite in $kernels; do
	for processor in $processors; do
		kernel $suite $processor > "$work/why.$suite.$processor"
	done
done
amd64_root
if arm64_system; then
	arm64_root
else
	rm -f "$work"/kernel.*.arm64
	for suite in $kernels; do
		echo "the mirror has not got what programs for arm64 link" \
		    > "$work/why.$suite.arm64"
	done
fi
for suite in $kernels; do
	for processor in $processors; do
		[ ! -f "$work/kernel.$suite.$processor" ] ||
		    echo "$suite $processor"
	done
done | sort -r -k 2 | xargs -r -n 2 -P 2 sh "$0" boot

for suite in $kernels; do
	for processor in $processors; do
		echo "$suite $processor"
	done
done > "$work/columns"
status=0
had=$(find "$work" -maxdepth 1 -name 'kernel.*' | wc -l)
awk -v work="$work" -v kernels="$had" -v left_out="$(echo $left_out)" \
    -v before="${QUICK:+$TOP/docs/support.md}" \
    -f "$here/table.awk" "$work/columns" > "$work/support.md" || status=$?
booted=$(find "$work" -maxdepth 1 -name 'guest.*' \
    -exec grep -al '^@=kernel' {} + | wc -l)
[ -z "${SUPPORT:-}" ] || [ "$booted" -lt 6 ] || cp "$work/support.md" "$SUPPORT"
[ "$had" -ge 6 ] || [ $status -ne 0 ] || {
	grep . "$work"/why.* || :
	not_run "the mirror has $had of these kernels, fewer than six: $work" \
	    "has what came of them"
}
exit $status
