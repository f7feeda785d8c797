#!/bin/sh
# go: a Go program keeps its own signals and its environment.  Its runtime
# preempts goroutines by SIGURG, which --stop may use too; with cgo it looks for
# what lies behind the environment, which --inside has changed.
set -eu

. "$TOP/tests/support/needs.sh"
needs go
needs_breakpoints
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export GOCACHE="${GOCACHE:-$scratch/cache}" GOPATH="$scratch/path" GOFLAGS=-mod=mod \
    GOTOOLCHAIN=local GOPROXY=off
mkdir "$scratch/count" "$scratch/calls"
# a sanitizer's library can be put into no other program
[ ! -x "$TOP/watchctl/watchctl" ] || WATCHCTL=$TOP/watchctl/watchctl

cat > "$scratch/count/main.go" <<'EOF'
package main

import (
	"fmt"
	"sync"
)

var hits int64
var sums [4]int64

//go:noinline
func spin(n int) (sum int64) {
	for i := 0; i < n; i++ {
		sum += int64(i) ^ sum
	}
	return sum
}

//go:noinline
func touch() {
	hits++
}

func main() {
	var all sync.WaitGroup
	var lock sync.Mutex

	for g := range sums {
		all.Add(1)
		go func(g int) {
			defer all.Done()
			for i := 0; i < 25; i++ {
				sums[g] += spin(2000000)
				lock.Lock()
				touch()
				lock.Unlock()
			}
		}(g)
	}
	all.Wait()
	fmt.Println(hits)
}
EOF
cat > "$scratch/calls/main.go" <<'EOF'
package main

// long shared;
// static void touch(void) { shared++; }
import "C"

import (
	"fmt"
	"os"
)

func main() {
	for i := 0; i < 100; i++ {
		C.touch()
	}
	fmt.Println(C.shared, os.Getenv("KEPT"), len(os.Getenv("LD_PRELOAD")))
}
EOF

# build NAME: false, and the log shown, if it fails
build()
{
	(cd "$scratch/$1" && go mod init "$1" && go build -o "../$1.out" .) \
	    > "$scratch/log" 2>&1 || {
		cat "$scratch/log"
		return 1
	}
}

# watch SPEC HITS OUTPUT OPTION... -- PROGRAM: it ends as it would alone, and all
# of its writes are reported
watch()
{
	spec=$1 hits=$2 output=$3
	shift 3
	said=$(timeout 240 "$WATCHCTL" -w "$spec" -o json \
	    -O "$scratch/report" "$@" 2> "$scratch/err") || {
		echo "status $?: $*"
		cat "$scratch/err"
		exit 1
	}
	if [ "$said" != "$output" ] ||
	    [ "$(grep -c '"type":"hit"' "$scratch/report")" != "$hits" ]; then
		echo "$*: '$said'"
		cat "$scratch/err"
		tail -n 1 "$scratch/report"
		exit 1
	fi
}

build count
for run in 1 2 3; do
	watch main.hits 100 100 --stop -- "$scratch/count.out"
done
watch main.hits 100 100 -- "$scratch/count.out"

# a C compiler may be missing, or unusable for it
if build calls; then
	export KEPT=kept
	watch shared 100 '100 kept 0' --inside -- "$scratch/calls.out"
	watch shared 100 '100 kept 0' --stop -- "$scratch/calls.out"
fi
