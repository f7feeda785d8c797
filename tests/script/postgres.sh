#!/bin/sh
# postgres: which backend changes a page of PostgreSQL's shared buffers, in the
# anonymous memory that they are in by default, and in System V's.
set -eu

. "$TOP/tests/support/needs.sh"
needs gdb jq setpriv
needs_breakpoints
[ "$(id -u)" -eq 0 ] || not_run 'this is not root'
bin=$(echo /usr/lib/postgresql/*/bin)
[ -x "$bin/initdb" ] || not_run 'PostgreSQL is not here'
scratch=$(mktemp -d)
watching=
end()
{
	[ -z "$watching" ] || kill -KILL "$watching" 2> /dev/null || :
	as_postgres pg_ctl -m immediate -D "$scratch/data" stop \
	    > /dev/null 2>&1 || :
	rm -rf "$scratch"
}
trap end EXIT
chown postgres "$scratch"
cd "$scratch"

as_postgres()
{
	program=$1
	shift
	setpriv --reuid postgres --regid postgres --clear-groups \
	    "$bin/$program" "$@"
}
sql()
{
	as_postgres psql -h "$scratch" -U postgres -qAtc "$1" postgres
}
failed()
{
	echo "$1"
	cat hits said log
	exit 1
}

# The words of a mapping's line in maps that has an address.
mapping_of()
{
	while read -r range mode offset device inode path; do
		if [ $(($1)) -ge $((0x${range%-*})) ] &&
		    [ $(($1)) -lt $((0x${range#*-})) ]; then
			echo "$range $mode $path"
		fi
	done < "/proc/$postmaster/maps"
}

# Of the SQL, the backend's pid; it makes room for rows on the page: each of
# these moves pd_lower, the 2 bytes at 12, by the 4 of its line pointer.
insert()
{
	sql "select pg_backend_pid(); insert into t select generate_series(1, $1)"
}

as_postgres initdb -D data -A trust > log 2>&1
for type in mmap sysv; do
	: > hits
	as_postgres pg_ctl -w -D data -l "$scratch/server" -o "-k $scratch \
	    -c listen_addresses= -c shared_buffers=8MB -c autovacuum=off \
	    -c shared_memory_type=$type" start > log
	postmaster=$(head -n 1 data/postmaster.pid)
	sql 'set client_min_messages = warning;
	    create extension if not exists pg_buffercache;
	    drop table if exists t; create table t(i int);
	    insert into t values (0)'
	buffer=$(sql "select bufferid from pg_buffercache where relblocknumber = 0
	    and relforknumber = 0 and relfilenode = pg_relation_filenode('t')")
	blocks=$(gdb -q -nx -batch -p "$postmaster" -ex 'x/gx &BufferBlocks' \
	    2> /dev/null | sed -n 's/.*<BufferBlocks>:[[:space:]]*//p')
	page=$((blocks + (buffer - 1) * 8192))
	mapping=$(mapping_of $page)
	case $type,$mapping in
	mmap,*' rw-s /dev/zero'* | sysv,*' rw-s /SYSV'*) ;;
	*) failed "$type: shared buffers are in '$mapping'" ;;
	esac
	range=${mapping%% *}
	offset=$((page - 0x${range%-*} + 12))
	"$WATCHCTL" -w "file:/proc/$postmaster/map_files/$range+$offset:2" \
	    -n 6 -o json > hits 2> said &
	watching=$!
	until grep -q '"type":"start"' hits; do
		kill -0 $watching || failed "$type: watchctl ended"
		sleep 0.05
	done
	first=$(insert 1)
	second=$(insert 3)
	third=$(insert 2)
	wait $watching || failed "$type: status $?"
	watching=
	[ "$(jq -r 'select(.type == "hit") | .pid' hits | tr '\n' ' ')" = \
	    "$first $second $second $second $third $third " ] ||
	    failed "$type: not the backends $first $second $third"
	# 24 bytes of a header, and a line pointer for the row that was there
	[ "$(jq -r 'select(.type == "hit") | .new' hits | tr '\n' ' ')" = \
	    '0x20 0x24 0x28 0x2c 0x30 0x34 ' ] || failed "$type: wrong values"
	[ "$(jq -r 'select(.type == "hit") | .frames[0].function' hits |
	    sort -u)" = PageAddItemExtended ] || failed "$type: by what?"
	[ "$(jq -r 'select(.type == "end") | .lost' hits)" = 0 ] ||
	    failed "$type: hits were lost"
	as_postgres pg_ctl -w -m fast -D data stop > log
done
