#!/bin/sh
# matrix_boot: the matrix starts a guest that does not boot once more, and says
# so; one that boots is started once.  The emulator is one of ours.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/top/obj.matrix"
ln -s "$TOP/tests" "$scratch/top/tests"
for tool in qemu-system-x86_64 qemu-system-aarch64 busybox clang ld.lld \
    llvm-ar; do
	ln -s emulator "$scratch/bin/$tool"
done
# it writes nothing the first HANGS times
cat > "$scratch/bin/emulator" <<'END'
#!/bin/sh
echo start >> "$STARTS"
while [ "$1" != -serial ]; do
	shift
done
[ "$(wc -l < "$STARTS")" -gt "$HANGS" ] || exec sleep 60
printf '@=kernel|6.1.0\r\n@row|ok|\r\n' > "${2#file:}"
END
chmod 755 "$scratch/bin/emulator"

# starts HANGS STARTS OK PATIENCE: so often it is started, and so many rows are
# ok
starts()
{
	rm -f "$scratch/starts"
	env "PATH=$scratch/bin:$PATH" "TOP=$scratch/top" PATIENCE=$4 HANGS=$1 \
	    "STARTS=$scratch/starts" sh "$TOP/tests/script/matrix.sh" boot \
	    bookworm amd64 > "$scratch/said"
	cat "$scratch/said"
	[ "$(wc -l < "$scratch/starts")" -eq "$2" ]
	grep -x "bookworm amd64: $3 ok, 0 failed" "$scratch/said"
}
starts 0 1 1 60
[ "$(grep -c 'once more' "$scratch/said")" -eq 0 ]
starts 1 2 1 10
grep -x 'bookworm amd64: it did not boot, and is started once more' \
    "$scratch/said"
starts 2 2 0 4
