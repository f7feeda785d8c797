/*
 * expression: which texts are which trees, and where others are wrong.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "spec/expression.h"

static void
put_type(char *out, size_t size, const struct token_type *type)
{
	int n = snprintf(out, size, "%.*s%.*s", type->base != NULL ?
	    (int)strlen(type->base) : (int)type->len, type->base != NULL ?
	    type->base : type->name, (int)type->pointers, "********");

	if (type->ndims > 0)
		n += snprintf(out + n, size - (size_t)n, "(%.*s)",
		    (int)type->outer, "********");
	for (unsigned i = 0; i < type->ndims; i++)
		n += snprintf(out + n, size - (size_t)n, "[%d]",
		    (int)type->count[i]);
	if (type->reference)
		(void)snprintf(out + n, size - (size_t)n, "&");
}

/* The tree as nested calls. */
static void
put(char *out, size_t size, const struct node *node)
{
	static const char *const names[] = {
		[NODE_MEMBER] = "member", [NODE_ARROW] = "arrow",
		[NODE_INDEX] = "index", [NODE_ELEMENT] = "element",
		[NODE_DEREFERENCE] = "at", [NODE_ADDRESS] = "address",
		[NODE_NEGATIVE] = "minus", [NODE_POSITIVE] = "plus",
		[NODE_COMPLEMENT] = "not", [NODE_CAST] = "cast",
		[NODE_SIZE] = "size", [NODE_TYPE_SIZE] = "typesize",
		[NODE_MULTIPLY] = "mul", [NODE_DIVIDE] = "div",
		[NODE_REMAINDER] = "rem", [NODE_ADD] = "add",
		[NODE_SUBTRACT] = "sub", [NODE_SHIFT_LEFT] = "shl",
		[NODE_SHIFT_RIGHT] = "shr", [NODE_AND] = "and",
	};
	char left[512] = "", right[512] = "", own[256] = "";

	if (node->left != NULL)
		put(left, sizeof(left), node->left);
	if (node->right != NULL)
		put(right, sizeof(right), node->right);
	if (node->kind == NODE_CAST || node->kind == NODE_TYPE_SIZE)
		put_type(own, sizeof(own), &node->type);
	else
		(void)snprintf(own, sizeof(own), "%.*s", (int)node->len,
		    node->text != NULL ? node->text : "");
	if (node->kind == NODE_NUMBER)
		(void)snprintf(out, size, "%lld:%u%s",
		    (long long)node->number.value, node->number.size,
		    node->number.is_signed ? "" : "u");
	else if (node->kind == NODE_NAME)
		(void)snprintf(out, size, "%s", own);
	else
		(void)snprintf(out, size, "%s(%s%s%s%s%s)", names[node->kind],
		    left, *right != '\0' ? " " : "", right,
		    *own != '\0' && *left != '\0' ? " " : "", own);
}

static const struct {
	const char *text, *tree;
} good[] = {
	{"counter", "counter"},
	{"server.clients->len", "arrow(member(server clients) len)"},
	{"table[3].next", "member(index(table 3:4) next)"},
	{"heads[129]->data", "arrow(index(heads 129:4) data)"},
	{"*(long *)0x404090", "at(cast(4210832:4 long*))"},
	{"((struct conn *)0x55d0c0)->state",
	 "arrow(cast(5624000:4 conn*) state)"},
	{"file.c::static_var", "file.c::static_var"},
	{"src/my-file.c::table[other.c::i]",
	 "index(src/my-file.c::table other.c::i)"},
	{"function::static_local", "function::static_local"},
	{"ns::Class<int, std::pair<a, b>>::member.x",
	 "member(ns::Class<int, std::pair<a, b>>::member x)"},
	{"(anonymous namespace)::hits.n",
	 "member((anonymous namespace)::hits n)"},
	{"module::name%member", "rem(module::name member)"},
	{"demo::state::TABLE.0.__1",
	 "member(member(demo::state::TABLE 0) __1)"},
	{"a + b * c", "add(a mul(b c))"},
	{"a - b - c", "sub(sub(a b) c)"},
	{"a << 2 + 1 & ~m", "and(shl(a add(2:4 1:4)) not(m))"},
	{"a >> b", "shr(a b)"},
	{"x<<2", "shl(x 2:4)"},
	{"-a[1]", "minus(index(a 1:4))"},
	{"*p->q", "at(arrow(p q))"},
	{"(*p).q", "member(at(p) q)"},
	{"&a", "address(a)"},
	{"* * p", "at(at(p))"},
	{"p[i + 1]", "index(p add(i 1:4))"},
	{"sizeof x", "size(x)"},
	{"sizeof(x)[1]", "size(index(x 1:4))"},
	{"sizeof (struct conn)", "typesize(conn)"},
	{"sizeof(unsigned long int *)", "typesize(unsigned long*)"},
	{"*(long unsigned const *)p", "at(cast(p unsigned long*))"},
	{"*(const ns::T<int> *const *)p", "at(cast(p ns::T<int>**))"},
	{"*(char*)(p)", "at(cast(p char*))"},
	{"*(int (*)[4])p", "at(cast(p int(*)[4]))"},
	{"(char *(* const *)[2][0x10])p", "cast(p char*(**)[2][16])"},
	{"*(int (**)(int, void (*)(void)))p", "at(cast(p void**))"},
	{"sizeof(T (*)[2])", "typesize(T(*)[2])"},
	{"(T)p", "cast(p T)"},
	{"(T &)p", "cast(p T&)"},
	{"(const T * &&)p.m", "cast(member(p m) T*&)"},
	{"((int (&)[2])p)[1]", "index(cast(p int()[2]&) 1:4)"},
	{"(a & b)", "and(a b)"},
	{"static_cast<T<int> *>(p)->x", "arrow(cast(p T<int>*) x)"},
	{"static_cast < T& > (p + 1).x",
	 "member(cast(add(p 1:4) T&) x)"},
	{"*reinterpret_cast<long *>(p)", "at(cast(p long*))"},
	{"const_cast<T &>(p)", "cast(p T&)"},
	{"static_cast", "static_cast"},
	{"(a)+b", "add(a b)"},
	{"(a)*b", "mul(a b)"},
	{"(a)[1]", "index(a 1:4)"},
	{"a.b::c", "member(a b::c)"},
	{"a[010]", "index(a 8:4)"},
	{"a[0x80000000]", "index(a 2147483648:4u)"},
	{"a[2147483648]", "index(a 2147483648:8)"},
	{"a[1ul]", "index(a 1:8u)"},
	{"a['\\n']", "index(a 10:4)"},
	{"a['\\x41']", "index(a 65:4)"},
	{"a['\\377']", "index(a -1:4)"},
	{"a['\\'']", "index(a 39:4)"},
	{"a(2)", "element(a 2:4)"},
	{"\xc3\xa4.b", "member(\xc3\xa4 b)"},
	{" a . b -> c ", "arrow(member(a b) c)"},
};

TEST(parses)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		struct expression tree;
		const char *p = good[i].text;
		const char *wrong = expression_parse(&p, &tree);
		char text[1024];

		if (wrong != NULL)
			fail_msg("%s: %s at \"%s\"", good[i].text, wrong, p);
		assert_string_equal(p, "");
		put(text, sizeof(text), tree.root);
		assert_string_equal(text, good[i].tree);
	}
}

TEST(stops_at_a_length)
{
	static const char *const texts[] = {"a->b:8", "a[n::x]:8", "*p :8"};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct expression tree;
		const char *p = texts[i];

		assert_null(expression_parse(&p, &tree));
		assert_string_equal(p, ":8");
	}
}

static const struct {
	const char *text;
	size_t at;
	const char *wrong;
} bad[] = {
	{"", 0, "is expected"},
	{"a.", 2, "a member's name"},
	{"a->", 3, "a member's name"},
	{"a..b", 1, "an operator"},
	{"a[", 2, "is expected"},
	{"a[1", 1, "never closed"},
	{"a[1)", 3, "']' is expected"},
	{"(a", 0, "never closed"},
	{"(a]", 2, "')' is expected"},
	{"a)", 1, "closes no bracket"},
	{"a +", 3, "is expected"},
	{"a = 3", 2, "change the program"},
	{"a += 3", 2, "change the program"},
	{"a == b", 2, "compare"},
	{"a++", 1, "change the program"},
	{"++a", 0, "change the program"},
	{"a ? b : c", 2, "nothing is decided"},
	{"f()", 1, "no function is called"},
	{"f(a, b)", 3, "no function is called"},
	{"a && b", 2, "an operator"},
	{"a | b", 2, "an operator"},
	{"a b", 2, "an operator"},
	{"T<int", 1, "never closed"},
	{"\"text\"", 0, "a string"},
	{"'ab'", 0, "one character"},
	{"''", 0, "one character"},
	{"'\\q'", 2, "escape"},
	{"'\\400'", 5, "escape"},
	{"a[09]", 3, "not a digit"},
	{"a[1.5]", 3, "not a digit"},
	{"a[0x]", 4, "hexadecimal digit"},
	{"a[99999999999999999999]", 2, "64 bits"},
	{"*(struct *)p", 10, "is expected"},
	{"static_cast<T *>p", 16, "'(' is expected"},
	{"static_cast<T * (p)", 16, "'>' is expected"},
	{"static_cast<>(p)", 12, "a type is expected"},
	{"static_cast<T *>(p", 16, "never closed"},
	{"dynamic_cast<T *>(p)", 0, "static_cast"},
	{"(T (&)(int))p", 5, "is expected"},
};

TEST(says_where_it_is_wrong)
{
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct expression tree;
		const char *p = bad[i].text;
		const char *wrong = expression_parse(&p, &tree);

		if (wrong == NULL || strstr(wrong, bad[i].wrong) == NULL ||
		    p != bad[i].text + bad[i].at)
			fail_msg("%s: %s at %d", bad[i].text, wrong == NULL ?
			    "nothing" : wrong, (int)(p - bad[i].text));
	}
}

/* As deep, and as long, as a command line can be. */
TEST(bounds_depth_and_size)
{
	static const char *const parts[] = {
		"(", "*", "-", "a[", "a(", "sizeof ", "a+", "(T)", "a.", "a->",
		"T<", "((a)", "x<(", "~", "a::", "static_cast<T>(", "(T &)",
	};
	static char text[200000];
	struct expression tree;

	for (size_t i = 0; i < COUNT(parts); i++) {
		const char *p = text;

		*text = '\0';
		for (size_t len = 0; len + 8 < sizeof(text);
		    len += strlen(parts[i]))
			(void)strcpy(text + len, parts[i]);
		assert_non_null(expression_parse(&p, &tree));
		assert_in_range(p - text, 0, sizeof(text));
	}
}

RUN_TESTS()
