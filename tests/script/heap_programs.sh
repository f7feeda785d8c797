#!/bin/sh
# heap_programs: programs as they are have no damage in their heaps, and do
# under --heap what they do without it: their output and exit status are the
# same.  Those that have an allocator of their own are told to use malloc.
set -eu

. "$TOP/tests/support/needs.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export G_SLICE=always-malloc QT_QPA_PLATFORM=offscreen HOME="$scratch"
qt=/usr/lib/qt5/bin:/usr/lib/qt6/bin:/usr/lib/qt6/libexec
export PATH="/usr/bin:$qt:$PATH"
unset DEBUGINFOD_URLS LD_PRELOAD
left=

# is_there PROGRAM PACKAGE
is_there()
{
	command -v "$1" > /dev/null || {
		echo "not run: $1 is not here ($2)"
		left="$left $1"
		return 1
	}
}

# guarded COMMAND...: whose report has no finding
guarded()
{
	status=0
	"$WATCHCTL" --heap --heap-runs 0 --error-exitcode 66 --no-cache \
	    -o json -O report -- "$@" || status=$?
	if grep -q '"type":"finding"' report; then
		echo "$*: damage:" >&2
		grep '"type":"finding"' report >&2
		exit 1
	fi
	return $status
}

# same COMMAND...: it prints the same, and ends with the same status
same()
{
	plain=0
	now=0
	"$@" > plain 2>&1 < /dev/null || plain=$?
	(guarded "$@") > now 2> errors < /dev/null || now=$?
	grep -v '^watchctl: 0 hits' errors >> now || :
	if [ $now -ne $plain ] || ! cmp -s plain now; then
		echo "$*: status $now, not $plain:"
		diff plain now | head -n 40
		exit 1
	fi
	echo "clean: $*"
}

# clean COMMAND...: it succeeds; what it prints differs from run to run
clean()
{
	guarded "$@" > now 2>&1 < /dev/null || {
		cat now
		exit 1
	}
	echo "clean: $*"
}

awk 'BEGIN { for (i = 0; i < 300; i++) printf "int f%d(int a, int *b) { int s" \
    " = a; for (int i = 0; i < a; i++) s += b[i] * %d; return s; }\n", i, i }' \
    > source.c
cat > source.cc <<'END'
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <thread>
#include <vector>
int main(int argc, char **) {
	std::map<std::string, std::vector<int>> all;
	for (int i = 0; i < 20000; i++)
		all["k" + std::to_string(i % 500)].push_back(i);
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([] {
			std::string s;
			for (int n = 0; n < 20000; n++)
				s += std::to_string(n);
		});
	for (auto &t : threads)
		t.join();
	if (argc > 1) {
		char *volatile block = new char[40];
		block[40] = 1;
		delete[] block;
	}
	std::cout << std::regex_replace(std::string(200, 'x'),
	    std::regex("x+"), "y") << all.size() << "\n";
}
END
awk 'BEGIN { print "create table t(a integer primary key, b text); begin;"
    for (i = 0; i < 20000; i++) printf "insert into t values(%d, %c%x%c);\n", i,
    39, i * 7919, 39
    print "commit; create index x on t(b); select count(*) from t as a, t as" \
    " b where a.b = b.b; delete from t where a % 3 = 0; vacuum; pragma" \
    " integrity_check;" }' > source.sql

# compilers, which run assembler and linker
same gcc -O2 -g -c -o /dev/null source.c
same g++ -O2 -g -pthread -o program source.cc
same ./program
# damage would be noticed
if (guarded ./program damage) > found 2>&1 || ! grep -q overflow found; then
	echo "./program damage: no damage was found:"
	cat found
	exit 1
fi
same sqlite3 t.db '.read source.sql' 'drop table t'

if is_there git git; then
	export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n
	export GIT_COMMITTER_EMAIL=e
	clean git init -q repository
	for i in 1 2 3; do
		cp source.sql "repository/file$i"
		echo $i >> "repository/file$i"
		clean git -C repository add .
		clean git -C repository commit -qm "commit $i"
	done
	same git -C repository log --stat -p
	same git -C repository grep -c 7919
	clean git -C repository gc -q --aggressive
	same git -C repository fsck --full
	clean git clone -q repository copy
	same git -C copy blame -s HEAD -- file1
fi

same perl -e 'my %h; $h{"k$_"} = [$_, "v$_"] for 1 .. 20000; my $t = join ",",
    sort keys %h; $t =~ s/(\d+),k/<$1>/g; print length $t, eval "$_" . "+ 1"
    for 1 .. 5; open my $f, "<", "source.c"; my @l = sort <$f>; print @l'
same perl -MStorable=dclone -MData::Dumper -MPOSIX -MEncode -e 'my $d = {map {
    $_ => [1 .. $_ % 7]} 1 .. 2000}; $Data::Dumper::Sortkeys = 1;
    print Dumper(dclone($d)); print encode("UTF-16", "x" x 1000)'

# python3's own tests
if [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import test.test_json' \
    2> /dev/null; then
	clean env PYTHONMALLOC=malloc PYTHONNOUSERSITE=1 /usr/bin/python3 -m \
	    test test_json test_re test_dict test_list test_unicode test_zlib \
	    test_struct test_array test_csv test_hashlib test_pickle \
	    test_marshal test_threading test_thread test_fork1 test_gc \
	    test_generators test_coroutines test_datetime test_xml_etree_c \
	    test_pyexpat
else
	echo "not run: python3's tests are not here (libpython3.11-testsuite)"
	left="$left python3's-tests"
fi

# GLib and GTK
if is_there gio libglib2.0-bin; then
	same gio list -a standard::size,standard::content-type /usr/share/doc
	same gio info /usr/bin/env
	same gio cat source.sql
	same gio tree /usr/share/bug
	clean gio copy source.sql copied
	same gio mime text/plain
	same gsettings list-schemas
fi
if is_there glib-compile-schemas libglib2.0-bin && mkdir schemas; then
	cat > schemas/a.gschema.xml <<'END'
<schemalist><schema id="a.b" path="/a/b/"><key name="k" type="a{sv}">
<default>{'x': &lt;[1, 2]&gt;}</default></key></schema></schemalist>
END
	same glib-compile-schemas --strict schemas
	same env GSETTINGS_SCHEMA_DIR=schemas GSETTINGS_BACKEND=memory \
	    gsettings list-recursively a.b
fi
if is_there glib-compile-resources libglib2.0-dev-bin; then
	echo '<gresources><gresource><file compressed="true">source.sql' \
	    '</file></gresource></gresources>' | tr -d ' ' |
	    sed 's/filecompressed/file compressed/' > a.gresource.xml
	same glib-compile-resources a.gresource.xml
	same gresource list a.gresource
	same gresource extract a.gresource /source.sql
fi
if is_there gtk-update-icon-cache gtk-update-icon-cache &&
    [ -d /usr/share/icons/hicolor ]; then
	cp -r /usr/share/icons/hicolor icons
	clean gtk-update-icon-cache -f icons
fi

# Qt
cat > object.h <<'END'
#include <QObject>
#include <QVariantMap>
class Thing : public QObject {
	Q_OBJECT
	Q_PROPERTY(int size READ size NOTIFY sized)
public:
	enum Kind { One, Two };
	Q_ENUM(Kind)
	int size() const;
signals:
	void sized(int now, const QVariantMap &more);
public slots:
	void take(QString text, QList<QObject *> all);
};
END
cat > form.ui <<'END'
<ui version="4.0"><class>Form</class><widget class="QWidget" name="Form">
<layout class="QVBoxLayout" name="l"><item><widget class="QLabel" name="a">
<property name="text"><string>text</string></property></widget></item>
</layout></widget></ui>
END
echo '<RCC><qresource><file>source.sql</file></qresource></RCC>' > a.qrc
cat > a.cc <<'END'
#include <QCoreApplication>
QString f() { return QCoreApplication::translate("Context", "some text"); }
END
if is_there moc qtbase5-dev-tools; then
	same moc object.h
	same rcc a.qrc
	same uic form.ui
fi
if is_there lupdate qttools5-dev-tools; then
	clean lupdate -silent a.cc -ts a.ts
	same lconvert -i a.ts -of po
	clean lrelease -silent a.ts
fi
# a program with windows
if is_there qtdiag qttools5-dev-tools; then
	clean qtdiag --fonts
fi

# jemalloc
if is_there redis-server redis-server; then
	ldd "$(command -v redis-server)" | grep -q libjemalloc ||
	    echo "redis-server: without jemalloc here"
	guarded redis-server --port 0 --unixsocket socket --save '' > log 2>&1 &
	server=$!
	until redis-cli -s socket ping > /dev/null 2>&1; do
		kill -0 $server 2> /dev/null || { cat log; exit 1; }
		sleep 0.1
	done
	redis-benchmark -s socket -n 5000 -q -d 64 -r 5000 > benchmark
	echo 'save
debug reload
config set activedefrag yes
flushall' | redis-cli -s socket > /dev/null
	redis-cli -s socket shutdown nosave
	wait $server || { cat log; exit 1; }
	echo "clean: redis-server"
fi

[ -z "$left" ] || not_run "not here:$left; all others are clean"
