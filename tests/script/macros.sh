#!/bin/sh
# macros: WP_WATCH and friends compile without a warning as C and as C++, refuse
# what has no address, and leave nothing behind with WP_DISABLE.
set -eu

cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT

cat > use.c <<'E2'
#include <watchpoint.h>

struct config { int limit, size; unsigned bit : 1; };
int use(struct config *config, volatile int *table, const char *name);

static int only_watched;

int
use(struct config *config, volatile int *table, const char *name)
{
	int local = WP_WATCH(only_watched);

	if (WP_WATCH(local) < 0)
		local++;
	if (config == NULL)
		WP_FREEZE(local) WP_PERMIT(local) { local = 1; }
	else
		WP_FREEZE(*config) { config->limit++; }
	if (local > 1) {
		WP_FREEZE(local) if (local > 2) local--;
	}
	WP_FREEZE(table[local++]) WP_FREEZE(name) WP_PERMIT(*name)
		table[0] = *name;
	WP_SCOPE(local) WP_SCOPE(config->limit) { local = config->limit++; }
	for (int i = 0; i < 3; i++) {
		WP_SCOPE(i) { if (i == 1) continue; }
		WP_FREEZE(config->size) {
			WP_FREEZE(config->limit) { WP_FREEZE(i) {
				if (i == 1)
					continue;
				if (i == 2)
					goto out;
			} }
			break;
		}
	}
out:
	WP_ASSERT_NO_STRAY();
	if (WP_WATCH_HEAP(config, config->limit) < 0 ||
	    WP_WATCH_HEAP(table + local++) < 0)
		return WP_UNWATCH(config->limit);
	WP_PERMIT(*config)
		return WP_UNWATCH(local);
	return 0;
}
E2

cat > plain.c <<'E2'
struct config { int limit, size; unsigned bit : 1; };
int use(struct config *config, volatile int *table);
int
use(struct config *config, volatile int *table)
{
	BLOCK(*config) {
		BLOCK(config->size) { table[0] = config->limit; }
		BLOCK(table[1]) { if (table[2] != 0) return 1; }
	}
	for (int i = 0; i < 10; i++) {
		BLOCK(table[i]) { table[i] = config->size; }
	}
	return VALUE(table[0]);
}
E2

cat > objects.cc <<'E2'
#include <watchpoint.h>

struct odd { int operator&() const { return 0; } int value; };

int use(odd &config, const int (&table)[4]);
int
use(odd &config, const int (&table)[4])
{
	auto first = [&](int n) { WP_FREEZE(config) { if (n) return n; } return 2; };
	wp::freeze whole(config), part(table[2], "table[2]");
	wp::watch watch(config.value);

	config.value = first(1);
	WP_FREEZE(config) { wp::permit mine(config); config.value = 2; }
	return whole && part ? 0 : 1;
}
E2

strict='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Werror'
flags="$strict -I$TOP/lib/watchpoint"
for opt in '-O0' '-O2' '-O2 -DWP_DISABLE'; do
	for cc in gcc clang; do
		$cc -std=c11 $opt $flags -c -o use.o use.c
	done
	for cxx in g++ clang++; do
		for std in c++11 c++17 c++20; do
			$cxx -std=$std $opt $flags -c -o use.o -x c++ use.c
			$cxx -std=$std $opt $flags \
			    -Wzero-as-null-pointer-constant -c -o use.o \
			    objects.cc
		done
	done
done

# a semicolon that takes the block's place is warned of
cat > semicolon.c <<'E2'
#include <watchpoint.h>
int use(int argument);
int
use(int argument)
{
	MACRO(argument);
	{
		argument++;
	}
	return argument;
}
E2
for macro in WP_SCOPE WP_FREEZE WP_PERMIT; do
	for cc in gcc 'gcc -O2' 'gcc -DWP_DISABLE' clang 'g++ -x c++' \
	    'clang++ -x c++' 'g++ -std=c++20 -x c++' \
	    'clang++ -std=c++20 -x c++'; do
		$cc -D"MACRO=$macro" -I"$TOP/lib/watchpoint" -fsyntax-only \
		    semicolon.c 2> said
		grep -q 'semicolon.c:6:.*\[-Wempty-body\]' said || {
			echo "$cc does not warn of a semicolon behind $macro"
			exit 1
		}
	done
done

# in a coroutine all of them compile
cat > coroutine.cc <<'E2'
#include <coroutine>
#include <watchpoint.h>

struct task {
	struct promise_type {
		task get_return_object() { return {}; }
		std::suspend_never initial_suspend() noexcept { return {}; }
		std::suspend_never final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() {}
	};
};

task use(int &config);
task
use(int &config)
{
	WP_FREEZE(config) {
		co_await std::suspend_never();
		WP_PERMIT(config) { config = 1; }
		WP_PERMIT(config) { co_await std::suspend_never(); }
	}
	wp::freeze whole(config);
	wp::permit mine(config);
	wp::permitted(config, [&] { config = 2; });
	co_await std::suspend_never();
}
E2
for opt in '-O0' '-O2' '-O2 -DWP_DISABLE'; do
	for cxx in 'g++ -std=c++20' 'clang++ -std=c++20'; do
		$cxx $opt -Wall -Wextra -Wshadow -Werror \
		    -I"$TOP/lib/watchpoint" -c -o use.o coroutine.cc
	done
done

# what cannot be watched, and how it is said in C and C++
for argument in 'config.limit + 1' '3' 'config.bit' 'function()' 'config.none'
do
	for macro in 'WP_WATCH(%s);' 'WP_WATCH_HEAP(&config, %s);' \
	    'WP_FREEZE(%s) { }' 'WP_PERMIT(%s) { }'; do
		for off in '' -DWP_DISABLE; do
			cat > refused.c <<-E2
			#include <watchpoint.h>
			struct { int limit; unsigned bit : 1; } config;
			int function(void);
			void use(void);
			void use(void) { $(printf "$macro" "$argument") }
			E2
			for cc in gcc clang 'g++ -x c++' 'clang++ -x c++'; do
				if $cc -fsyntax-only $off $flags refused.c \
				    2> said; then
					echo "$cc accepts $macro of $argument"
					exit 1
				fi
				grep -q 'error:.*\(lvalue\|address\|bit.field\|rvalue\|none\)' said
			done
		done
	done
done

# with WP_DISABLE the code is what it is without the macros
for cc in gcc clang 'g++ -x c++' 'clang++ -x c++'; do
	build="$cc -O1 -I$TOP/lib/watchpoint -include watchpoint.h -c plain.c"
	$build -o on.o -DBLOCK=WP_FREEZE -D'VALUE(x)=WP_WATCH(x)'
	$build -o off.o -DBLOCK=WP_FREEZE -D'VALUE(x)=WP_WATCH(x)' -DWP_DISABLE
	$build -o none.o -D'BLOCK(x)=' -D'VALUE(x)=0'
	cmp off.o none.o
	! cmp -s on.o none.o
done
