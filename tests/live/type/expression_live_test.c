/*
 * expression: what SPECs that are expressions mean in running programs, as gdb
 * says, and what their hits are of.
 */
#include "test.h"

#include <inttypes.h>
#include <unistd.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

/* --- against gdb --- */

struct place {
	uint64_t addr, size;
};

/* Ask gdb for all of them at once. */
static void
ask_gdb(const struct target *t, const char *const *texts, size_t n,
    struct place *places)
{
	FILE *f = fopen(scratch_path("commands"), "w");
	struct outcome o;
	const char *p;

	assert_non_null(f);
	(void)fprintf(f, "set language c++\n");
	for (size_t i = 0; i < n; i++)
		(void)fprintf(f, "printf \"\\nplace %%lx %%lu\\n\", "
		    "(unsigned long)&(%s), (unsigned long)sizeof(%s)\n",
		    texts[i], texts[i]);
	assert_int_equal(fclose(f), 0);
	run(&o, LIST("/usr/bin/env", "gdb", "-q", "-nx", "-batch", "-p", t->pid,
	    "-x", scratch_path("commands")));
	p = o.out;
	for (size_t i = 0; i < n; i++) {
		p = strstr(p, "\nplace ");
		if (p == NULL || sscanf(p, " place %" SCNx64 " %" SCNu64,
		    &places[i].addr, &places[i].size) != 2)
			fail_msg("%s: gdb does not know: %s%s", texts[i], o.out,
			    o.err);
		p++;
	}
}

/* What watchctl takes it for. */
static struct place
ask_watchctl(const struct target *t, const char *text)
{
	const json_t *watch;
	struct place place;
	struct outcome o;

	run(&o, LIST(watchctl(), "-w", text, "-t", "0.001", "-o", "json",
	    "-p", t->pid));
	if (o.status != 0)
		fail_msg("%s: %s", text, o.err);
	watch = json_array_get(json_object_get(first_of(&o, "start"),
	    "watches"), 0);
	assert_string_equal(text_of(watch, "spec"), text);
	place.addr = hex_of(watch, "addr");
	place.size = (uint64_t)number_of(watch, "len");
	return place;
}

static void
expect_as_gdb(const struct target *t, const char *const *texts, size_t n)
{
	struct place *theirs = calloc(n, sizeof(*theirs)), ours;

	assert_non_null(theirs);
	ask_gdb(t, texts, n, theirs);
	for (size_t i = 0; i < n; i++) {
		ours = ask_watchctl(t, texts[i]);
		if (ours.addr != theirs[i].addr || ours.size != theirs[i].size)
			fail_msg("%s: %#" PRIx64 ":%" PRIu64 ", gdb says %#"
			    PRIx64 ":%" PRIu64, texts[i], ours.addr, ours.size,
			    theirs[i].addr, theirs[i].size);
	}
	free(theirs);
}

static void
c_start(struct target *t)
{
	target_start(t, LIST(victim("expressions")));
}

TEST(agrees_with_gdb_on_c)
{
	static const char *const texts[] = {
		"server.clients->len", "server.clients->next->len",
		"server.clients->next", "server.total", "own->total",
		"own->table[2].name", "own->table[at].next", "(*own).total",
		"heads[129]->state", "heads[129]->u.raw", "heads[129]->high",
		"(*second)->fd", "second[0]->name[3]", "second[124]->fd",
		"numbers[1][2]", "*(numbers[1] + 2)", "*(2 + numbers[1])",
		"numbers[at - 1][at & 1]", "numbers[narrow / 100][1]",
		"numbers[sizeof(int) >> 1][0]", "numbers[-at + 5][~-3 % 2]",
		"flexible->data[3]", "flexible->n", "(*rows)[1]", "rows[2][4]",
		"*(long *)&server", "*(int *)((char *)&server.total + 4)",
		"((conn_t *)heads[129])->fd",
		"((struct conn *)heads[129])->u.level",
		"((struct server *)anything)->total",
		"*(unsigned short *)(&heads[129]->name[4])",
		"*&heads[129]->fd", "heads[129]", "*heads", "*second", "second",
		"bump::calls", "bump::chain.next",
		"*(int (*)[4])anything", "(*(int (*)[4])anything)[1]",
		"((int (*)[4])anything)[1][2]", "*(short (*)[2][3])anything",
		"((short (*)[2][3])anything)[1][1][2]",
		"*(struct list (*)[2])anything",
		"((conn_t (*)[2])heads[129])[0][0].fd",
		"*(int *(*)[3])anything", "*(char (**)[16])anything",
		"*(int (**)(int, void (*)(void)))anything",
		"*(const unsigned long (*const *)[2])anything",
		"numbers[sizeof(int (*)[7]) / 8][2]",
	};
	struct target t;

	c_start(&t);
	expect_as_gdb(&t, texts, COUNT(texts));
	/* gdb does not take an index in front */
	assert_int_equal(ask_watchctl(&t, "2[numbers[1]]").addr,
	    ask_watchctl(&t, "numbers[1][2]").addr);
	assert_int_equal(ask_watchctl(&t, "at[numbers][2]").addr,
	    ask_watchctl(&t, "numbers[at][2]").addr);
	target_act(&t);
	target_end(&t, 7);
}

/* Nothing in the symbols says that it is C++. */
TEST(a_reference_is_one_without_mangled_names)
{
	struct outcome symbols;
	struct target t;

	run(&symbols, LIST("/usr/bin/env", "nm", victim("reference")));
	assert_holds(symbols.out, " reference\n");
	assert_lacks(symbols.out, " _Z");
	target_start(&t, LIST(victim("reference")));
	assert_int_equal(ask_watchctl(&t, "reference").addr,
	    ask_watchctl(&t, "object[1]").addr);
	assert_int_equal(ask_watchctl(&t, "*pointer").addr,
	    ask_watchctl(&t, "object[2]").addr);
	/* a constant pointer is itself */
	assert_int_not_equal(ask_watchctl(&t, "pointer").addr,
	    ask_watchctl(&t, "object[2]").addr);
	target_end(&t, 7);
}

TEST(agrees_with_gdb_on_cxx)
{
	static const char *const texts[] = {
		"ns::object.weight", "ns::Class::total", "ns::object.total",
		"ns::object.made", "ns::reference.peer->made",
		"ns::reference.ratio", "ns::base->id", "ns::inner::deep.x",
		"((ns::Class *)ns::base)->box.value[1]",
		"((ns::Other *)&ns::object)->weight",
		"((ns::Base *)ns::object.peer)->id",
		"((ns::Class *)(ns::Other *)&ns::object)->ratio",
		"((ns::Other *)(void *)&ns::object)->weight",
		"ns::Box<int, 3>::count", "ns::Box<int,3>::count",
		"box.value[2]", "boxes[2]->value[1]",
		"((ns::Box<unsigned long, 2> *)boxes[2])->value[0]",
		"hits", "hits._M_i", "array._M_elems[2]",
		"ns::object.list._M_impl._M_start[1]",
		"classes._M_impl._M_start[0]->peer->ratio",
		"name._M_string_length", "name._M_dataplus._M_p[1]",
		"work::calls", "ns::object.own._M_t", "ns::reference.peer->box",
		"lib::v2::plain.y", "lib::v2::pair.second",
		"((lib::v2::Plain *)boxes[2])->y",
		"((std::string *)boxes[2])->_M_string_length",
		"map._M_t._M_impl._M_node_count",
		"map._M_t._M_impl._M_header._M_parent->_M_left",
		"static_cast<std::_Rb_tree_node<std::pair<int const, std::"
		 "__cxx11::basic_string<char, std::char_traits<char>, std::"
		 "allocator<char> > > > *>(map._M_t._M_impl._M_header"
		 "._M_parent)->_M_storage._M_storage[8]",
		"ns::virtuals.id", "ns::virtual_one->id", "ns::upper->id",
		"((ns::Base *)ns::virtual_one)->id",
		"((ns::Base *)&ns::diamond)->id",
		"static_cast<ns::Base *>(ns::upper)->id",
		"ns::diamond.value", "ns::diamond.weight", "ns::diamond.x",
		"((ns::Hides *)&ns::diamond)->id", "ns::diamond.shared",
		"static_cast<ns::Diamond<short> *>(ns::upper)->value",
		"static_cast<ns::Class *>(ns::base)->box.value[1]",
		"((ns::Class *)ns::other)->ratio",
		"((const ns::Class *)ns::other)->list",
		"*reinterpret_cast<long *>(boxes[2])",
		"*static_cast<long *>((void *)boxes[2])",
		"(ns::Other &)ns::object",
		"static_cast<ns::Base &>(ns::diamond)",
		"reinterpret_cast<short &>(ns::object.ratio)",
		"(int &)name", "(long &)*boxes[2]",
	};
	struct target t;

	target_start(&t, LIST(victim("expressions_cxx")));
	expect_as_gdb(&t, texts, COUNT(texts));
	/* of a reference, gdb gives the size of a pointer */
	assert_int_equal(ask_watchctl(&t, "holder.r").addr,
	    ask_watchctl(&t, "box.value[1]").addr);
	assert_int_equal(ask_watchctl(&t, "holder.r").size, 4);
	/* as a name that is a symbol's, too */
	assert_int_equal(ask_watchctl(&t, "ns::reference:8").addr,
	    ask_watchctl(&t, "ns::object:8").addr);
	/* where gdb takes no name of a base class, or of no namespace */
	assert_int_equal(ask_watchctl(&t, "ns::object.Other::id").addr,
	    ask_watchctl(&t, "ns::object.weight").addr + 8);
	assert_int_equal(ask_watchctl(&t, "(anonymous namespace)::anonymous.a")
	    .size, 4);
	assert_int_equal(ask_watchctl(&t, "anonymous.a").addr,
	    ask_watchctl(&t, "(anonymous namespace)::anonymous.a").addr);
	/* that is a tuple's, which has one of its deleter too */
	assert_int_equal(ask_watchctl(&t,
	    "ns::object.own._M_t._M_t._M_head_impl->value[1]").size, 8);
	/* of an inline namespace, where no frame is in it */
	assert_int_equal(ask_watchctl(&t, "lib::plain.y").addr,
	    ask_watchctl(&t, "lib::v2::plain.y").addr);
	assert_int_equal(ask_watchctl(&t, "lib::pair").addr,
	    ask_watchctl(&t, "lib::v2::pair").addr);
	assert_int_equal(ask_watchctl(&t, "((lib::Plain *)boxes[2])->y").addr,
	    ask_watchctl(&t, "((lib::v2::Plain *)boxes[2])->y").addr);
	/* and no name of a type that leaves out what it has by default */
	assert_int_equal(ask_watchctl(&t,
	    "((lib::Pair<char> *)boxes[2])->second").addr, ask_watchctl(&t,
	    "((lib::v2::Pair<char, long, 2> *)boxes[2])->second").addr);
	assert_int_equal(ask_watchctl(&t, "((lib::Pair<char, long> *)boxes[2])"
	    "->second").size, 8);
	assert_int_equal(ask_watchctl(&t, "((std::basic_string<char> *)"
	    "boxes[2])->_M_string_length").addr, ask_watchctl(&t,
	    "((std::string *)boxes[2])->_M_string_length").addr);
	target_end(&t, 7);
}

/* What C++ means, and gdb refuses or takes differently. */
TEST(finds_what_virtual_base_classes_hide)
{
	struct target t;
	struct place hides, base;

	target_start(&t, LIST(victim("expressions_cxx")));
	hides = ask_watchctl(&t, "((ns::Hides *)&ns::diamond)->id");
	base = ask_watchctl(&t, "((ns::Base *)&ns::diamond)->id");
	assert_int_not_equal(hides.addr, base.addr);
	assert_int_equal(ask_watchctl(&t, "ns::diamond.Hides::id").addr,
	    hides.addr);
	assert_int_equal(ask_watchctl(&t, "ns::diamond.Base::id").addr,
	    base.addr);
	assert_int_equal(ask_watchctl(&t, "((ns::Hides &)ns::diamond).id")
	    .addr, hides.addr);
	assert_int_equal(ask_watchctl(&t, "(int (&)[2])ns::diamond.value")
	    .size, 8);
	/* gdb 13 goes to the base class twice */
	assert_int_equal(ask_watchctl(&t, "((ns::Other &)ns::object).weight")
	    .addr, ask_watchctl(&t, "ns::object.weight").addr);
	assert_int_equal(ask_watchctl(&t, "static_cast<ns::Other &>("
	    "ns::object).weight").addr,
	    ask_watchctl(&t, "ns::object.weight").addr);
	assert_int_equal(ask_watchctl(&t, "static_cast<ns::Base &>("
	    "ns::diamond).id").addr, base.addr);
	/* and there where it should not */
	assert_int_equal(ask_watchctl(&t, "reinterpret_cast<ns::Other *>"
	    "(&ns::object)->weight").addr, ask_watchctl(&t,
	    "((ns::Other *)(void *)&ns::object)->weight").addr);
	assert_int_equal(ask_watchctl(&t, "((ns::Diamond<short> *)ns::renamed)"
	    "->value").addr, ask_watchctl(&t, "ns::diamond.value").addr);
	target_end(&t, 7);
}

TEST(refuses_casts_that_lead_nowhere)
{
	static const struct {
		const char *spec, *why;
	} rows[] = {
		{"((ns::Virtual *)(ns::Base *)ns::virtual_one)->x", "'((ns::"
		 "Virtual *)(ns::Base *)ns::virtual_one)->x': from a virtual "
		 "base class no cast leads to what it is part of: give its "
		 "address; or cast to void * first, for the same address "
		 "(column 2)"},
		{"ns::nothing_yet->id", "'ns::nothing_yet->id': it is not "
		 "constructed now, so that where its virtual base class lies "
		 "is not known (column 18)"},
		{"ns::virtuals.ib", "'ns::virtuals.ib': ns::Virtual has no "
		 "member 'ib', nearest: id (column 14)"},
		{"(ns::Other &)3", "a reference is to an object, and this is "
		 "a value (column 1)"},
		{"dynamic_cast<ns::Class *>(ns::base)->ratio", "what "
		 "dynamic_cast leads to, only the program's own code finds: "
		 "write static_cast (column 1)"},
		{"static_cast<ns::Nowhere *>(ns::base)->ratio", "the debug "
		 "information has no type 'ns::Nowhere' (column 13)"},
		{"static_cast<ns::Class *>ns::base->ratio", "'(' is expected "
		 "after the type (column 25)"},
		{"static_cast<int *>(ns::base)", "this is a value, not an "
		 "object that could be watched; perhaps you mean "
		 "'*static_cast<int *>(ns::base)' (column 1)"},
	};
	struct target t;
	struct outcome o;

	target_start(&t, LIST(victim("expressions_cxx")));
	for (size_t i = 0; i < COUNT(rows); i++) {
		run(&o, LIST(watchctl(), "-w", rows[i].spec, "-t", "0.001",
		    "-p", t.pid));
		if (o.status != 125 || strstr(o.err, rows[i].why) == NULL)
			fail_msg("%s: %d: %s", rows[i].spec, o.status, o.err);
	}
	run(&o, LIST(watchctl(), "-w", "ns::virtual_one->id", "--follow", "-t",
	    "0.001", "-p", t.pid));
	assert_int_equal(o.status, 125);
	assert_holds(o.err, "where a virtual base class lies is known only "
	    "from the object: leave out --follow");
	target_end(&t, 7);
}

TEST(reports_a_member_of_a_virtual_base_class)
{
	struct running w;
	struct target t;
	struct outcome o;

	target_start(&t, LIST(victim("expressions_cxx")));
	start(&w, LIST(watchctl(), "-w", "ns::upper->id", "-p", t.pid));
	await(w.out, "1 thread");
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	assert_holds(o.out, "  write  ns::upper->id (int, 4 bytes at ");
	assert_holds(o.out, ")  0 -> 5\n");
}

/* Each operand is evaluated once. */
TEST(takes_many_operators)
{
	enum { MANY = 100 };
	char text[8 * MANY] = "numbers[0";
	struct target t;

	for (int i = 0; i < MANY; i++)
		strcat(text, i % 2 == 0 ? "+1" : "-1");
	strcat(text, "][2]");
	c_start(&t);
	assert_int_equal(ask_watchctl(&t, text).addr,
	    ask_watchctl(&t, "numbers[0][2]").addr);
	target_act(&t);
	target_end(&t, 7);
}

/* Names that begin like the one that is asked for take no time to speak of:
   where a type is declared has to be sought from its unit on. */
TEST(finds_a_type_behind_many_of_like_names)
{
	enum { MANY = 40000 };
	FILE *f = fopen(scratch_path("many.c"), "w");
	struct outcome o;

	assert_non_null(f);
	for (int n = 0; n < MANY; n++)
		(void)fprintf(f, "struct c%d { int a; } c%d;\n", n, n);
	(void)fprintf(f, "struct c { int a, b; } *pointer; long object;\n"
	    "int main(void) { ((volatile int *)&object)[1] = 5; "
	    "return 0; }\n");
	assert_int_equal(fclose(f), 0);
	scratch_run("gcc -g -o many many.c");
	run(&o, LIST(watchctl(), "-w", "((struct c *)&object)->b", "--",
	    scratch_path("many")));
	if (o.status != 0 || strstr(o.err, "\nwatchctl: 1 hit, 1 reported, 0 "
	    "lost") == NULL || strstr(o.err, "warning") != NULL)
		fail_msg("%d: %s", o.status, o.err);
}

/* Symbols of many variables have the letter, and some the name. */
TEST(finds_a_short_name_among_many)
{
	enum { MANY = 200 };
	FILE *f = fopen(scratch_path("short.c"), "w");
	struct outcome o;

	assert_non_null(f);
	for (int n = 0; n < MANY; n++)
		(void)fprintf(f, "static int xi%d; int *f%d(void) { static "
		    "int i; return xi%d++ > 0 ? &i : 0; }\n", n, n, n);
	(void)fprintf(f, "void bump(void) { static int i; i++; }\n"
	    "int main(void) { bump(); return 0; }\n");
	assert_int_equal(fclose(f), 0);
	scratch_run("gcc -g -o short short.c");
	run(&o, LIST(watchctl(), "-w", "bump::i", "--",
	    scratch_path("short")));
	if (o.status != 0 || strstr(o.err, "\nwatchctl: 1 hit, 1 reported, 0 "
	    "lost") == NULL)
		fail_msg("%d: %s", o.status, o.err);
}

/* A name that no variable of the program has, but several of a library. */
TEST(names_inside_libraries_rank_last)
{
	struct outcome o;

	scratch_write("one.c", "static int buffer; int one(void) { return "
	    "buffer++; }\n");
	scratch_write("two.c", "static int buffer; int two(void) { return "
	    "buffer++; }\n");
	scratch_write("program.c", "int one(void), two(void), buffers; "
	    "int main(void) { return one() + two() + buffers; }\n");
	scratch_run("gcc -g -shared -fPIC -o libown.so one.c two.c && "
	    "gcc -g -o program program.c -L. -lown -Wl,-rpath,'$ORIGIN'");
	run(&o, LIST(watchctl(), "-w", "buffer:1", "--",
	    scratch_path("program")));
	if (o.status != 125 || strstr(o.err, "'buffer:1': no symbol 'buffer' "
	    "in program, nearest: buffers; ") == NULL)
		fail_msg("%d: %s", o.status, o.err);
}

/* Forms that gdb has not. */
TEST(has_names_of_files_and_bytes_of_fields)
{
	struct place field, name;
	struct target t;

	c_start(&t);
	assert_int_equal(ask_watchctl(&t, "expressions.c::own->total").addr,
	    ask_watchctl(&t, "expressions.c!own->total").addr);
	assert_int_equal(ask_watchctl(&t, "expressions.c!bump::calls").addr,
	    ask_watchctl(&t, "bump::calls").addr);
	assert_int_equal(ask_watchctl(&t, "expressions!server.total").addr,
	    ask_watchctl(&t, "server.total").addr);
	/* a bit-field is the bytes that hold it */
	name = ask_watchctl(&t, "heads[129]->name");
	field = ask_watchctl(&t, "heads[129]->on");
	assert_int_equal(field.addr, name.addr + name.size);
	assert_int_equal(field.size, 1);
	field = ask_watchctl(&t, "heads[129]->mode");
	assert_int_equal(field.addr, name.addr + name.size);
	assert_int_equal(field.size, 2);
	/* a length of one's own, and an offset in bytes */
	assert_int_equal(ask_watchctl(&t, "server.total:4").size, 4);
	assert_int_equal(ask_watchctl(&t, "*anything:4").addr,
	    ask_watchctl(&t, "server.clients").addr);
	assert_int_equal(ask_watchctl(&t, "bump::calls+2:2").addr,
	    ask_watchctl(&t, "bump::calls").addr + 2);
	/* an enumerator */
	assert_int_equal(ask_watchctl(&t, "server.table[CONN_OPEN].fd").addr,
	    ask_watchctl(&t, "server.table[2].fd").addr);
	target_act(&t);
	target_end(&t, 7);
}

/* --- hits --- */

TEST(reports_the_type_of_what_is_hit)
{
	static const struct {
		const char *path, *type, *old, *new;
	} changes[] = {
		{"(*server.clients).len", "int", "0", "41"},
		{"heads[129]->state", "enum state", "CONN_NEW", "CONN_CLOSED"},
		{"bump::calls", "int", "0", "2"},
	};
	struct running w;
	struct target t;
	struct outcome o;
	unsigned n = 0;
	json_t *line;
	size_t i;

	c_start(&t);
	watch_start(&w, LIST(watchctl(), "-w", "*server.clients:8", "-w",
	    "heads[129]->state", "-w", "bump::calls", "-o", "json", "-p",
	    t.pid));
	assert_int_equal(target_act(&t), COUNT(changes));
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	expect_hits(&o, COUNT(changes));
	each_hit(&o, i, line) {
		assert_string_equal(text_of(line, "path"), changes[n].path);
		assert_string_equal(text_of(line, "value_type"),
		    changes[n].type);
		assert_string_equal(text_of(line, "old_text"), changes[n].old);
		assert_string_equal(text_of(line, "new_text"), changes[n].new);
		n++;
	}
	assert_int_equal(n, COUNT(changes));
}

TEST(shows_the_type_in_text)
{
	struct running w;
	struct target t;
	struct outcome o;

	c_start(&t);
	start(&w, LIST(watchctl(), "--stop", "-w", "heads[129]->state", "-p",
	    t.pid));
	await(w.out, "1 thread");
	target_act(&t);
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	if (strstr(o.out, "heads[129]->state (enum state, 4 bytes at ") == NULL
	    || strstr(o.out, "CONN_NEW -> CONN_CLOSED") == NULL)
		fail_msg("%s", o.out);
}

TEST(gives_hits_the_type_of_a_cast)
{
	static const struct {
		const char *spec, *type, *change;
	} rows[] = {
		{"*(float *)words", " (float, ", "  0 -> 1.5\n"},
		{"*(signed char *)&words[1]", " (signed char, ",
		 "  0 -> -1\n"},
		{"*(unsigned *)&words[1]", " (unsigned int, ",
		 "  0 -> 4294967295\n"},
		{"((struct pair *)bytes)->second", " (long, ", "  0 -> -7\n"},
		{"((struct flags *)bytes)->high", " (unsigned int, ",
		 "  (*((struct flags *)bytes)): {low = 0, high = 0} -> "
		 "{low = 0, high = 7}\n"},
		{"*(unsigned (*)[2])words", " (unsigned int, ",
		 "  (*(unsigned (*)[2])words)[1]: 0 -> 4294967295\n"},
		/* what is cast is the index */
		{"words[(long)1]", " (int, ", "  words[1]: 0 -> -1\n"},
		{"words[1]", " (int, ", "  0 -> -1\n"},
	};
	FILE *f = fopen(scratch_path("cast.c"), "w");
	struct outcome o;

	assert_non_null(f);
	(void)fprintf(f, "struct pair { long first, second; } pair;\n"
	    "struct flags { unsigned low:3, high:5; char c; } flags;\n"
	    "int words[4];\n"
	    "_Alignas(8) unsigned char bytes[16];\n"
	    "int main(void) { *(float *)words = 1.5F; words[1] = -1;\n"
	    "((struct pair *)bytes)->second = -7;\n"
	    "((struct flags *)bytes)->high = 7; return 0; }\n");
	assert_int_equal(fclose(f), 0);
	scratch_run("gcc -g -fno-strict-aliasing -o cast cast.c");
	for (size_t i = 0; i < COUNT(rows); i++) {
		run(&o, LIST(watchctl(), "-w", rows[i].spec, "--",
		    scratch_path("cast")));
		if (o.status != 0 || strstr(o.err, rows[i].type) == NULL ||
		    strstr(o.err, rows[i].change) == NULL)
			fail_msg("%s: %d: %s", rows[i].spec, o.status, o.err);
	}
	/* and so says what reads a recording */
	run_status(&o, 0, LIST(watchctl(), "-w",
	    "((struct pair *)bytes)->second", "-o", "perf", "-O",
	    scratch_path("cast.data"), "--", scratch_path("cast")));
	run(&o, LIST(watchctl(), "report", scratch_path("cast.data")));
	if (strstr(o.out, " ((struct pair *)bytes)->second (long, ") == NULL ||
	    strstr(o.out, "  -> -7\n") == NULL)
		fail_msg("%d: %s%s", o.status, o.out, o.err);
}

/* --- what is no object --- */

TEST(refuses_with_the_column)
{
	static const struct {
		const char *spec, *why;
	} rows[] = {
		{"server.clints->len", "struct server has no member 'clints', "
		 "nearest: clients (column 8)"},
		{"server.clients->x", "struct list has no member 'x', but len, "
		 "next (column 17)"},
		{"server->total", "'server' is of type struct server: its "
		 "members are behind '.' (column 9)"},
		{"own.total", "'own' is of type struct server *: a pointer's "
		 "members are behind '->' (column 5)"},
		{"at.x", "'at' is of type int: that has no members (column 4)"},
		{"at[1]", "neither an array nor a pointer (column 3)"},
		{"*server.total", "'server.total' is a number"},
		{"nobody->fd", "'nobody' is a null pointer now"},
		{"heads[7]->fd", "'heads[7]' is a null pointer now"},
		{"*(long *)(8 - 8)", "null pointer"},
		{"((struct conn *)16)->next->fd", "no memory can be read"},
		{"heads[129]->opaque->x", "null pointer"},
		{"srver.total", "nearest: server (column 1)"},
		{"numbers[ta][1]", "no symbol 'ta'"},
		{"never_read", "expressions has a variable of that name, but "
		 "the compiler optimized it out"},
		{"numbers[never_read][1]", "the compiler optimized it out: "
		 "declare it volatile, or compile with -O0 (column 9)"},
		{"((struct cnn *)anything)->fd", "no type 'cnn' (column 10)"},
		{"&server", "a value, not an object that could be watched; "
		 "perhaps you mean 'server' (column 1)"},
		{"own + 1", "perhaps you mean '*(own + 1)' (column 5)"},
		{"sizeof server", "perhaps you mean 'server'"},
		{"(conn_t *)anything", "perhaps you mean '*(conn_t *)anything"
		 "'"},
		{"numbers[1 / 0][0]", "divides by zero (column 11)"},
		{"numbers[1 << 40][0]", "more bits than there are"},
		{"&heads[129]->on", "a bit-field has no address"},
		{"*anything", "of type void"},
		{"flexible->data", "its length is not known"},
		{"server.total = 3", "change the program"},
		{"expressions.c!nobdy", "no symbol 'nobdy' in the static "
		 "symbols of expressions.c"},
		{"expressoins.c!own", "no module 'expressoins.c' is mapped"},
		{"server.clients->", "a member's name is expected (column 17)"},
		{"bump(3)", "no function is called"},
	};
	struct target t;
	struct outcome o;

	c_start(&t);
	for (size_t i = 0; i < COUNT(rows); i++) {
		run(&o, LIST(watchctl(), "-w", rows[i].spec, "-t", "0.001",
		    "-p", t.pid));
		if (o.status != 125 || strstr(o.err, rows[i].why) == NULL)
			fail_msg("%s: %d: %s", rows[i].spec, o.status, o.err);
		assert_string_equal(o.out, "");
		assert_ptr_equal(strchr(o.err, '\n'), o.err + strlen(o.err) -
		    1);
	}
	target_act(&t);
	target_end(&t, 7);
}

/* Before its first instruction no pointer points anywhere. */
TEST(refuses_a_pointer_on_the_way_of_a_command)
{
	static const char *const specs[] = {
		"server.clients->len", "heads[129]->state", "numbers[at][0]",
	};
	struct outcome o;

	for (size_t i = 0; i < COUNT(specs); i++) {
		run_status(&o, 125, LIST(watchctl(), "-w", specs[i], "--",
		    victim("expressions")));
		if (strstr(o.err, "attach to it with -p") == NULL ||
		    (strstr(o.err, "--follow moves with it, or ") != NULL) !=
		    (strstr(specs[i], "->") != NULL))
			fail_msg("%s", o.err);
	}
}

TEST(watches_a_command_from_the_start)
{
	struct running w;
	struct outcome o;
	char line[256];

	start(&w, LIST(watchctl(), "-w", "bump::calls", "-w", "server.total",
	    "-o", "json", "-O", scratch_path("report"), "--",
	    victim("expressions")));
	hear(&w, line, sizeof(line));
	say(&w, "go\n");
	assert_int_equal(target_done(&w), 3);
	say(&w, "end\n");
	finish_status(&w, &o, 7);
}

/* Without debug information there are symbols, and C's own types. */
TEST(does_without_debug_information_what_symbols_allow)
{
	struct target t;
	struct outcome o;

	scratch_run("strip -g -o bare %s", victim("expressions"));
	target_start(&t, LIST(scratch_path("bare")));
	assert_int_equal(ask_watchctl(&t, "*(long *)((char *)&server + 8)")
	    .addr, ask_watchctl(&t, "server+8").addr);
	assert_int_equal(ask_watchctl(&t, "((int *)&numbers)[3]").size, 4);
	run_status(&o, 125, LIST(watchctl(), "-w", "server.total", "-t",
	    "0.001", "-p", t.pid));
	if (strstr(o.err, "'server' has no debug information") == NULL ||
	    strstr(o.err, "SYMBOL+OFF:LEN") == NULL)
		fail_msg("%s", o.err);
	target_act(&t);
	target_end(&t, 7);
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
