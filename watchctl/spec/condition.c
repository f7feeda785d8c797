/* condition: parses conditions, by precedence. */
#include "spec/condition.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/token.h"

enum {
	NODES_MAX = 512,
	DEPTH_MAX = 64,		/* nested parentheses and signs */
	COST_MAX = 1 << 20,
};

struct condition_parser {
	const char *begin, *p;
	struct condition *condition;
	struct condition_error *error;
	unsigned depth;
	bool no_memory;
};

typedef const struct condition_node *tree;

/* --- errors --- */

static tree
wrong_at(struct condition_parser *s, unsigned column, const char *what)
{
	s->error->column = column;
	(void)snprintf(s->error->text, sizeof(s->error->text), "%s", what);
	return NULL;
}

static unsigned
column_of(const struct condition_parser *s, const char *p)
{
	return (unsigned)(p - s->begin) + 1;
}

static tree
wrong(struct condition_parser *s, const char *what)
{
	return wrong_at(s, column_of(s, s->p), what);
}

/* --- nodes --- */

static struct condition_node *
node_new(struct condition_parser *s, enum condition_kind kind, unsigned column)
{
	struct condition *c = s->condition;
	struct condition_node *node;

	if (c->n == NODES_MAX) {
		(void)wrong_at(s, column, "it is too long");
		return NULL;
	}
	node = &c->nodes[c->n++];
	node->kind = kind;
	node->column = column;
	return node;
}

static bool
is_text(tree node)
{
	return node->kind == CONDITION_TEXT || (node->kind ==
	    CONDITION_NAME && node->name >= CONDITION_COMM);
}

/* An operand that has to be a number. */
static tree
number_only(struct condition_parser *s, tree node)
{
	return node == NULL || !is_text(node) ? node : wrong_at(s, node->column,
	    "a string can only be compared, by == or !=, with another");
}

static unsigned
cost_of(tree a)
{
	return a == NULL ? 0 : a->cost;
}

/* A node whose operands are numbers. */
static struct condition_node *
node_over(struct condition_parser *s, enum condition_kind kind, unsigned column,
    tree a, tree b)
{
	struct condition_node *node = node_new(s, kind, column);

	if (node == NULL)
		return NULL;
	node->a = a;
	node->b = b;
	node->cost = 1 + cost_of(a) + cost_of(b);
	if (node->cost > COST_MAX)
		node->cost = COST_MAX;
	return node;
}

/* Copy some characters. */
static char *
keep(struct condition_parser *s, const char *text, size_t len)
{
	char *copy = s->condition->text_end;

	memcpy(copy, text, len);
	copy[len] = '\0';
	s->condition->text_end += len + 1;
	return copy;
}

/* --- names --- */

static const struct {
	const char *text;
	enum condition_name name;
	unsigned cost;
} names[] = {
	{"old", CONDITION_OLD, 16}, {"new", CONDITION_NEW, 16},
	{"changed", CONDITION_CHANGED, 16}, {"count", CONDITION_COUNT, 1},
	{"tid", CONDITION_TID, 1}, {"pid", CONDITION_PID, 1},
	{"cpu", CONDITION_CPU, 1}, {"comm", CONDITION_COMM, 4},
	{"access", CONDITION_ACCESS, 2}, {"origin", CONDITION_ORIGIN, 1},
};

static const struct {
	const char *text;
	int value;
} constants[] = {{"true", 1}, {"false", 0}, {"NULL", 0}};

static void
skip(struct condition_parser *s)
{
	s->p = token_skip(s->p);
}

/* Skip a character if it comes next. */
static bool
take(struct condition_parser *s, char c)
{
	skip(s);
	if (*s->p != c)
		return false;
	s->p++;
	return true;
}

/* --- constants --- */

/* A string, without escapes. */
static tree
string(struct condition_parser *s)
{
	struct condition_node *node = node_new(s, CONDITION_TEXT,
	    column_of(s, s->p));
	const char *begin = s->p + 1, *end = strchr(begin, '"');

	if (node == NULL)
		return NULL;
	if (end == NULL)
		return wrong(s, "the string is not closed");
	node->text = keep(s, begin, (size_t)(end - begin));
	s->p = end + 1;
	return node;
}

/* The length of a floating-point constant, or 0 if this is none. */
static size_t
float_length(const char *p)
{
	const bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
	const char *exponent = hex ? "pP" : "eE";
	bool is_float = false;
	size_t n = 0;

	for (; isalnum((unsigned char)p[n]) || p[n] == '.' || p[n] == '_' ||
	    ((p[n] == '+' || p[n] == '-') && n > 0 &&
	    strchr(exponent, p[n - 1]) != NULL); n++)
		is_float = is_float || p[n] == '.' ||
		    strchr(exponent, p[n]) != NULL;
	return is_float ? n : 0;
}

static tree
float_constant(struct condition_parser *s, struct condition_node *node,
    size_t len)
{
	static const char suffixes[] = "fFlL";
	char text[64], *end;

	if (len >= sizeof(text))
		return wrong(s, "the number is too long");
	memcpy(text, s->p, len);
	text[len] = '\0';
	node->number = (struct ex_number){.is_float = true, .is_signed = true,
	    .size = sizeof(double)};
	node->number.real = (long double)strtod(text, &end);
	if (*end != '\0' && strchr(suffixes, *end) != NULL) {
		const bool narrow = *end == 'f' || *end == 'F';

		node->number.size = narrow ? sizeof(float) :
		    sizeof(long double);
		node->number.real = narrow ? (long double)strtof(text, NULL) :
		    strtold(text, NULL);
		end++;
	}
	if (*end != '\0') {
		s->p += end - text;
		return wrong(s, "not a digit of a number");
	}
	s->p += len;
	return node;
}

static tree
constant(struct condition_parser *s)
{
	struct condition_node *node = node_new(s, CONDITION_NUMBER,
	    column_of(s, s->p));
	const size_t len = *s->p == '\'' ? 0 : float_length(s->p);
	struct token_number number;
	const char *why;

	if (node == NULL || len > 0)
		return node == NULL ? NULL : float_constant(s, node, len);
	why = *s->p == '\'' ? token_character(&s->p, &number) :
	    token_number(&s->p, &number);
	if (why != NULL)
		return wrong(s, why);
	node->number = ex_number_integer(number.value, number.size,
	    number.is_signed);
	return node;
}

/* --- what a name is --- */

/* in("f") or caller("f"), after the name. */
static tree
call(struct condition_parser *s, struct condition_node *node)
{
	tree text;

	node->call = s->condition->calls++;
	node->cost = node->kind == CONDITION_IN ? 64 : 256;
	if (!take(s, '('))
		return wrong(s, "'(' is missing: in(\"FUNCTION\"), "
		    "caller(\"FUNCTION\")");
	skip(s);
	if (*s->p != '"')
		return wrong(s, "a function's name is missing, in quotes");
	if ((text = string(s)) == NULL)
		return NULL;
	if (*text->text == '\0')
		return wrong_at(s, text->column, "a function has a name");
	node->text = text->text;
	return take(s, ')') ? node : wrong(s, "')' is missing");
}

/* An unknown name is taken for an enumerator. */
static tree
enumerator(struct condition_parser *s, struct condition_node *node, size_t len)
{
	node->kind = CONDITION_ENUMERATOR;
	node->text = keep(s, s->p, len);
	node->cost = 1;
	s->condition->typed = true;
	s->p += len;
	skip(s);
	if (*s->p == '(')
		return wrong_at(s, node->column, "there is no such function; "
		    "there are in(\"FUNCTION\") and caller(\"FUNCTION\")");
	if (strncmp(s->p, "::", 2) == 0)
		return wrong_at(s, node->column, "an enumerator is named "
		    "without its type");
	return node;
}

static tree
name(struct condition_parser *s)
{
	struct condition_node *node = node_new(s, CONDITION_NAME,
	    column_of(s, s->p));
	const char *p = s->p;
	const size_t len = token_word(p);

	if (node == NULL)
		return NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!token_is(p, names[i].text))
			continue;
		node->name = names[i].name;
		node->cost = names[i].cost;
		s->p += len;
		return node;
	}
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		if (!token_is(p, constants[i].text))
			continue;
		node->kind = CONDITION_NUMBER;
		node->number = ex_number_int(constants[i].value);
		s->p += len;
		return node;
	}
	if (token_is(p, "in") || token_is(p, "caller")) {
		node->kind = *p == 'i' ? CONDITION_IN : CONDITION_CALLER;
		s->p += len;
		return call(s, node);
	}
	return enumerator(s, node, len);
}

/* --- casts --- */

/* The kind of number of a C type.  Returns false if there is none. */
static bool
type_number(const char *type, struct ex_number *n)
{
	static const struct {
		const char *type;
		unsigned size;
		bool is_float, is_signed;
	} types[] = {
		{"char", 1, false, true}, {"signed char", 1, false, true},
		{"unsigned char", 1, false, false},
		{"short", 2, false, true}, {"unsigned short", 2, false, false},
		{"int", 4, false, true}, {"unsigned int", 4, false, false},
		{"long", 8, false, true}, {"unsigned long", 8, false, false},
		{"long long", 8, false, true},
		{"unsigned long long", 8, false, false},
		{"float", sizeof(float), true, true},
		{"double", sizeof(double), true, true},
		{"long double", sizeof(long double), true, true},
		{"bool", 1, false, false},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(types[i].type, type) == 0) {
			*n = (struct ex_number){.is_float = types[i].is_float,
			    .is_signed = types[i].is_signed,
			    .size = types[i].size};
			return true;
		}
	}
	return false;
}

static tree unary(struct condition_parser *);
static tree choice(struct condition_parser *);

/* Parse something that may be nested in itself. */
static tree
nested(struct condition_parser *s, tree (*parse)(struct condition_parser *))
{
	tree node;

	if (s->depth == DEPTH_MAX)
		return wrong(s, "it is nested too deeply");
	s->depth++;
	node = parse(s);
	s->depth--;
	return node;
}

/* A cast; s->p is at its operand. */
static tree
cast(struct condition_parser *s, const struct token_type *type, unsigned column)
{
	struct ex_number number = {0};
	struct condition_node *node;
	tree a;

	if (type->pointers > 0 || type->reference ||
	    !type_number(type->base, &number))
		return wrong_at(s, column, "a cast is to a number's type");
	a = number_only(s, nested(s, unary));
	if (a == NULL || (node = node_over(s, strcmp(type->base, "bool") == 0 ?
	    CONDITION_CAST_BOOL : CONDITION_CAST, column, a, NULL)) == NULL)
		return NULL;
	node->number = number;
	return node;
}

static tree
parenthesized(struct condition_parser *s)
{
	const unsigned column = column_of(s, s->p);
	const char *p = s->p + 1;
	struct token_type type;
	tree node;

	if (token_type(&p, &type) && type.base != NULL && *p == ')') {
		s->p = p + 1;
		return cast(s, &type, column);
	}
	s->p++;
	if ((node = nested(s, choice)) == NULL)
		return NULL;
	return take(s, ')') ? node : wrong(s, "')' is missing");
}

/* --- operators --- */

static bool
is_float(tree node)
{
	return (node->kind == CONDITION_NUMBER ||
	    node->kind == CONDITION_CAST) && node->number.is_float;
}

static tree
sign(struct condition_parser *s, enum condition_kind kind)
{
	const unsigned column = column_of(s, s->p);
	tree a;

	s->p++;
	if ((a = number_only(s, nested(s, unary))) == NULL)
		return NULL;
	if (kind == CONDITION_COMPLEMENT && is_float(a))
		return wrong_at(s, column, "a floating-point number has no "
		    "such operator");
	return node_over(s, kind, column, a, NULL);
}

static tree
unary(struct condition_parser *s)
{
	skip(s);
	if ((s->p[0] == '+' || s->p[0] == '-') && s->p[1] == s->p[0])
		return wrong(s, "nothing can be changed here: no ++, no --");
	switch (*s->p) {
	case '!':
		return sign(s, CONDITION_NOT);
	case '~':
		return sign(s, CONDITION_COMPLEMENT);
	case '-':
		return sign(s, CONDITION_NEGATIVE);
	case '+':
		return sign(s, CONDITION_POSITIVE);
	case '(':
		return parenthesized(s);
	case '"':
		return string(s);
	case '\'':
		return constant(s);
	case '&':
	case '*':
		return wrong(s, "memory is not read here: no & and * in front "
		    "of a value");
	default:
		break;
	}
	if (isdigit((unsigned char)*s->p) || (*s->p == '.' &&
	    isdigit((unsigned char)s->p[1])))
		return constant(s);
	return token_word(s->p) > 0 ? name(s) :
	    wrong(s, "a value is missing");
}

/* The binary operators with C's precedence: the higher, the tighter. */
static const struct binary {
	const char *text;
	unsigned precedence;
	enum condition_kind kind;
	enum ex_operator operator;
} binaries[] = {
	/* longer operators first */
	{"<<", 8, CONDITION_OPERATOR, EX_SHIFT_LEFT},
	{">>", 8, CONDITION_OPERATOR, EX_SHIFT_RIGHT},
	{"<=", 7, CONDITION_OPERATOR, EX_NOT_ABOVE},
	{">=", 7, CONDITION_OPERATOR, EX_NOT_LESS},
	{"==", 6, CONDITION_OPERATOR, EX_EQUAL},
	{"!=", 6, CONDITION_OPERATOR, EX_UNEQUAL},
	{"&&", 2, CONDITION_AND, 0},
	{"||", 1, CONDITION_OR, 0},
	{"*", 10, CONDITION_OPERATOR, EX_MULTIPLY},
	{"/", 10, CONDITION_OPERATOR, EX_DIVIDE},
	{"%", 10, CONDITION_OPERATOR, EX_REMAINDER},
	{"+", 9, CONDITION_OPERATOR, EX_ADD},
	{"-", 9, CONDITION_OPERATOR, EX_SUBTRACT},
	{"<", 7, CONDITION_OPERATOR, EX_LESS},
	{">", 7, CONDITION_OPERATOR, EX_ABOVE},
	{"&", 5, CONDITION_OPERATOR, EX_BIT_AND},
	{"^", 4, CONDITION_OPERATOR, EX_BIT_XOR},
	{"|", 3, CONDITION_OPERATOR, EX_BIT_OR},
};

/* The operator that comes next, or NULL. */
static const struct binary *
binary_at(const char *p)
{
	for (size_t i = 0; i < sizeof(binaries) / sizeof(binaries[0]); i++)
		if (strncmp(p, binaries[i].text,
		    strlen(binaries[i].text)) == 0)
			return &binaries[i];
	return NULL;
}

/* NULL, or why the text of a hit cannot be this. */
static const char *
check_text(enum condition_name of, const char *text)
{
	static const char *const accesses[] = {
		"read", "write", "execute", "read-write",
	};

	if (of == CONDITION_ORIGIN)
		return strcmp(text, "user") == 0 ||
		    strcmp(text, "kernel") == 0 ? NULL :
		    "no such origin; there are \"user\" and \"kernel\"";
	for (size_t i = 0; of == CONDITION_ACCESS && i < 4; i++)
		if (strcmp(text, accesses[i]) == 0)
			return NULL;
	return of == CONDITION_ACCESS ? "no such access; there are \"read\", "
	    "\"write\", \"execute\" and \"read-write\"" : NULL;
}

/* comm == "text" or "text" == comm. */
static tree
compare_texts(struct condition_parser *s, const struct binary *binary, tree a,
    tree b)
{
	const tree text = a->kind == CONDITION_TEXT ? a : b;
	const tree of = a->kind == CONDITION_TEXT ? b : a;
	struct condition_node *node;
	const char *why;

	if (text->kind != CONDITION_TEXT || of->kind != CONDITION_NAME ||
	    !is_text(of))
		return wrong_at(s, b->column, "comm, access or origin is "
		    "compared with a string in quotes");
	if ((why = check_text(of->name, text->text)) != NULL)
		return wrong_at(s, text->column, why);
	node = node_over(s, CONDITION_EQUAL_TEXT, a->column, of, NULL);
	if (node == NULL)
		return NULL;
	node->a = NULL;
	node->name = of->name;
	node->text = text->text;
	return binary->operator == EX_EQUAL ? node :
	    node_over(s, CONDITION_NOT, a->column, node, NULL);
}

/* Errors that show without a hit. */
static const char *
check_operands(enum ex_operator operator, tree a, tree b)
{
	const bool divides = operator == EX_DIVIDE || operator == EX_REMAINDER;
	const bool whole = operator == EX_REMAINDER ||
	    operator == EX_SHIFT_LEFT || operator == EX_SHIFT_RIGHT ||
	    operator >= EX_BIT_AND;

	if (whole && (is_float(a) || is_float(b)))
		return "a floating-point number has no such operator";
	if (divides && b->kind == CONDITION_NUMBER && !b->number.is_float &&
	    b->number.bits == 0)
		return "this divides by zero";
	return NULL;
}

static tree
join(struct condition_parser *s, const struct binary *binary, unsigned column,
    tree a, tree b)
{
	const bool equality = binary->kind == CONDITION_OPERATOR &&
	    (binary->operator == EX_EQUAL || binary->operator == EX_UNEQUAL);
	struct condition_node *node;
	const char *why = NULL;
	bool swap;

	if (equality && (is_text(a) || is_text(b)))
		return compare_texts(s, binary, a, b);
	if (number_only(s, a) == NULL || number_only(s, b) == NULL)
		return NULL;
	if (binary->kind == CONDITION_OPERATOR)
		why = check_operands(binary->operator, a, b);
	if (why != NULL)
		return wrong_at(s, column, why);
	swap = binary->kind != CONDITION_OPERATOR && b->cost < a->cost;
	node = node_over(s, binary->kind, column, swap ? b : a, swap ? a : b);
	if (node != NULL)
		node->operator = binary->operator;
	return node;
}

/* Operands joined by operators of at least this precedence. */
static tree
bound(struct condition_parser *s, unsigned precedence)
{
	const struct binary *binary;
	tree a = unary(s), b;

	while (a != NULL) {
		const char *at;

		skip(s);
		binary = binary_at(s->p);
		if (binary == NULL || binary->precedence < precedence)
			break;
		at = s->p;
		s->p += strlen(binary->text);
		if (*s->p == '=')
			return wrong(s, "nothing is assigned here");
		/* recursion is bounded by the number of precedences */
		if ((b = bound(s, binary->precedence + 1)) == NULL)
			return NULL;
		a = join(s, binary, column_of(s, at), a, b);
	}
	return a;
}

static tree
choice(struct condition_parser *s)
{
	struct condition_node *node;
	tree a = bound(s, 1), b, c;
	unsigned column;

	skip(s);
	if (a == NULL || *s->p != '?')
		return a;
	column = column_of(s, s->p);
	s->p++;
	if (number_only(s, a) == NULL ||
	    (b = number_only(s, nested(s, choice))) == NULL)
		return NULL;
	if (!take(s, ':'))
		return wrong(s, "':' is missing");
	if ((c = number_only(s, nested(s, choice))) == NULL ||
	    (node = node_over(s, CONDITION_CHOICE, column, a, b)) == NULL)
		return NULL;
	node->c = c;
	node->cost += c->cost;
	return node;
}

static tree
whole(struct condition_parser *s)
{
	const tree node = number_only(s, choice(s));

	if (node == NULL)
		return NULL;
	skip(s);
	if (*s->p == '=')
		return wrong(s, "nothing is assigned here; == compares");
	return *s->p == '\0' ? node : wrong(s, *s->p == ')' ?
	    "there is no '(' for this" : "an operator is missing");
}

int
condition_parse(const char *text, struct condition *c,
    struct condition_error *error)
{
	struct condition_parser s = {
		.begin = text, .p = text, .condition = c, .error = error,
	};

	*c = (struct condition){
		.nodes = calloc(NODES_MAX, sizeof(*c->nodes)),
		.texts = malloc(strlen(text) + 2),
	};
	c->text_end = c->texts;
	if (c->nodes == NULL || c->texts == NULL)
		return -ENOMEM;
	c->root = whole(&s);
	return c->root == NULL ? -EINVAL : 0;
}

void
condition_free(struct condition *c)
{
	free(c->nodes);
	free(c->texts);
	*c = (struct condition){0};
}
