/*
 * expression: parses by recursive descent.
 *
 * The functions advance over what they take.  What is wrong is kept the first
 * time, with where, and ends all of them.
 */
#include "spec/expression.h"

#include <string.h>

enum { DEPTH_MAX = 64 };	/* parentheses within parentheses, operators in
				   front of operators */

struct expression_parser {
	struct expression *tree;
	const char *p;
	const char *wrong, *wrong_at;	/* NULL: nothing yet */
	unsigned depth;
};

static const struct node *
fail(struct expression_parser *parser, const char *at, const char *wrong)
{
	if (parser->wrong == NULL) {
		parser->wrong = wrong;
		parser->wrong_at = at;
	}
	return NULL;
}

static const struct node *
add(struct expression_parser *parser, const struct node *node)
{
	struct expression *tree = parser->tree;

	if (tree->n == EXPRESSION_NODES)
		return fail(parser, node->at, "the expression is too long");
	tree->node[tree->n] = *node;
	tree->node[tree->n].end = parser->p;
	return &tree->node[tree->n++];
}

static const struct node *parse_all(struct expression_parser *);
static const struct node *parse_unary(struct expression_parser *);

/* --- operands --- */

static const struct node *
parse_number(struct expression_parser *parser)
{
	struct node node = {
		.kind = NODE_NUMBER, .begin = parser->p, .at = parser->p,
	};
	const char *wrong = *parser->p == '\'' ?
	    token_character(&parser->p, &node.number) :
	    token_number(&parser->p, &node.number);

	return wrong != NULL ? fail(parser, parser->p, wrong) :
	    add(parser, &node);
}

/* A name, which the whole node is, or which is a member of left. */
static const struct node *
parse_name(struct expression_parser *parser, enum node_kind kind,
    const struct node *left, const char *at)
{
	struct node node = {.kind = kind, .left = left, .text = parser->p};
	const char *wrong;

	node.len = token_name(parser->p, &wrong);
	if (wrong != NULL)
		return fail(parser, wrong, "this is never closed");
	/* of a tuple */
	if (node.len == 0 && kind == NODE_MEMBER)
		node.len = strspn(parser->p, "0123456789");
	if (node.len == 0)
		return fail(parser, parser->p, kind == NODE_NAME ?
		    "a variable, a constant or '(' is expected" :
		    "a member's name is expected");
	parser->p += node.len;
	node.begin = left != NULL ? left->begin : node.text;
	node.at = at != NULL ? node.text : node.begin;
	return add(parser, &node);
}

static const struct node *
parse_parenthesized(struct expression_parser *parser)
{
	const char *begin = parser->p++;
	const struct node *inner = parse_all(parser);

	if (inner == NULL)
		return NULL;
	parser->p = token_skip(parser->p);
	if (*parser->p != ')')
		return *parser->p == '\0' ? fail(parser, begin,
		    "this is never closed") : fail(parser, parser->p,
		    "an operator or ')' is expected");
	parser->p++;
	/* all that it is, with its parentheses */
	for (size_t i = 0; i < parser->tree->n; i++) {
		if (&parser->tree->node[i] == inner) {
			parser->tree->node[i].begin = begin;
			parser->tree->node[i].end = parser->p;
		}
	}
	return inner;
}

/* A cast of C++, which has its type in angle brackets. */
struct named_cast {
	const char *name;
	bool reinterprets;
	const char *wrong;	/* NULL: nothing */
};

/* The one that begins at p, or NULL. */
static const struct named_cast *
named_cast_at(const char *p)
{
	static const struct named_cast casts[] = {
		{"static_cast", false, NULL},
		{"reinterpret_cast", true, NULL},
		{"const_cast", true, NULL},
		{"dynamic_cast", false, "what dynamic_cast leads to, only the "
		 "program's own code finds: write static_cast"},
	};
	const char *next = token_skip(p + token_word(p));

	if (*next != '<' || next[1] == '<')
		return NULL;
	for (size_t i = 0; i < sizeof(casts) / sizeof(casts[0]); i++)
		if (token_is(p, casts[i].name))
			return &casts[i];
	return NULL;
}

static const struct node *
parse_named_cast(struct expression_parser *parser,
    const struct named_cast *cast)
{
	const char *begin = parser->p;
	const char *p = token_skip(begin + strlen(cast->name));
	struct node node = {
		.kind = NODE_CAST, .begin = begin, .at = begin,
		.reinterprets = cast->reinterprets,
	};

	if (cast->wrong != NULL)
		return fail(parser, begin, cast->wrong);
	p = token_skip(p + 1);
	if (!token_type(&p, &node.type))
		return fail(parser, p, "a type is expected");
	if (*p != '>')
		return fail(parser, p, "'>' is expected after the type");
	parser->p = token_skip(p + 1);
	if (*parser->p != '(')
		return fail(parser, parser->p, "'(' is expected after the "
		    "type");
	node.left = parse_parenthesized(parser);
	return node.left != NULL ? add(parser, &node) : NULL;
}

static const struct node *
parse_primary(struct expression_parser *parser)
{
	const char *p = parser->p = token_skip(parser->p);
	const struct named_cast *cast = named_cast_at(p);
	const char *wrong;

	if ((*p >= '0' && *p <= '9' && token_file(p) == 0) || *p == '\'')
		return parse_number(parser);
	if (*p == '(' && token_name(p, &wrong) == 0)
		return parse_parenthesized(parser);
	if (*p == '"')
		return fail(parser, p, "a string is no object of the program");
	if (cast != NULL)
		return parse_named_cast(parser, cast);
	return parse_name(parser, NODE_NAME, NULL, NULL);
}

static const struct node *
parse_index(struct expression_parser *parser, const struct node *left,
    char close)
{
	struct node node = {
		.kind = close == ']' ? NODE_INDEX : NODE_ELEMENT, .left = left,
		.begin = left->begin, .at = parser->p,
	};

	parser->p = token_skip(parser->p + 1);
	if (close == ')' && *parser->p == ')')
		return fail(parser, node.at, "no function is called here");
	if ((node.right = parse_all(parser)) == NULL)
		return NULL;
	parser->p = token_skip(parser->p);
	if (*parser->p != close)
		return *parser->p == '\0' ? fail(parser, node.at,
		    "this is never closed") : fail(parser, parser->p,
		    close == ']' ? "an operator or ']' is expected" :
		    "an operator or ')' is expected; no function is called "
		    "here");
	parser->p++;
	return add(parser, &node);
}

/* All that is behind an operand. */
static const struct node *
parse_steps(struct expression_parser *parser, const struct node *left)
{
	while (left != NULL) {
		const char *p = token_skip(parser->p);
		const bool arrow = strncmp(p, "->", 2) == 0;

		if (*p == '[' || *p == '(') {
			parser->p = p;
			left = parse_index(parser, left, *p == '[' ? ']' : ')');
		} else if (arrow || (*p == '.' && p[1] != '.')) {
			parser->p = token_skip(p + (arrow ? 2 : 1));
			left = parse_name(parser, arrow ? NODE_ARROW :
			    NODE_MEMBER, left, p);
		} else {
			break;
		}
	}
	return left;
}

static const struct node *
parse_postfix(struct expression_parser *parser)
{
	return parse_steps(parser, parse_primary(parser));
}

/* --- operators in front --- */

/* Whether what begins here can only be the operand of a cast. */
static bool
is_operand(const char *p)
{
	const char *wrong;

	return (*p >= '0' && *p <= '9') || *p == '~' || *p == '\'' ||
	    *p == '(' || token_name(p, &wrong) > 0;
}

/* A type in parentheses.  A name alone is one only where an operand follows. */
static bool
take_type(struct expression_parser *parser, struct token_type *type,
    bool name_alone)
{
	const char *p = parser->p + 1;

	if (*parser->p != '(' || !token_type(&p, type) || *p != ')')
		return false;
	p = token_skip(p + 1);
	if (type->base == NULL && type->tag == TAG_ANY && type->pointers == 0 &&
	    type->ndims == 0 && !type->reference &&
	    (!name_alone || !is_operand(p)))
		return false;
	parser->p = p;
	return true;
}

static const struct node *
parse_operand(struct expression_parser *parser, struct node *node)
{
	if (parser->depth == DEPTH_MAX)
		return fail(parser, node->at, "this is nested too deeply");
	parser->depth++;
	node->left = parse_unary(parser);
	parser->depth--;
	return node->left != NULL ? add(parser, node) : NULL;
}

static const struct node *
parse_size(struct expression_parser *parser, struct node *node)
{
	const char *begin = parser->p;

	parser->p = token_skip(parser->p + strlen("sizeof"));
	node->kind = NODE_SIZE;
	if (!take_type(parser, &node->type, false))
		return parse_operand(parser, node);
	node->kind = NODE_TYPE_SIZE;
	node->at = begin;
	return add(parser, node);
}

static const struct node *
parse_unary(struct expression_parser *parser)
{
	static const char operators[] = "*&-+~";
	static const enum node_kind kinds[] = {
		NODE_DEREFERENCE, NODE_ADDRESS, NODE_NEGATIVE, NODE_POSITIVE,
		NODE_COMPLEMENT,
	};
	const char *p = parser->p = token_skip(parser->p);
	struct node node = {.kind = NODE_CAST, .begin = p, .at = p};
	const char *operator = *p == '\0' ? NULL : strchr(operators, *p);

	if (strncmp(p, "++", 2) == 0 || strncmp(p, "--", 2) == 0)
		return fail(parser, p, "what would change the program is not "
		    "evaluated");
	if (strncmp(p, "&&", 2) == 0)
		return fail(parser, p, "there is no such operator here");
	if (operator != NULL) {
		node.kind = kinds[operator - operators];
		parser->p++;
		return parse_operand(parser, &node);
	}
	if (token_is(p, "sizeof"))
		return parse_size(parser, &node);
	if (take_type(parser, &node.type, true))
		return parse_operand(parser, &node);
	return parse_postfix(parser);
}

/* --- operators in between --- */

struct operator {
	const char *text;
	unsigned level;		/* those of a higher one hold more tightly */
	enum node_kind kind;
};

enum { LEVELS = 4 };

/* NULL: none is there. */
static const struct operator *
operator_at(const char *p)
{
	static const struct operator operators[] = {
		{"<<", 1, NODE_SHIFT_LEFT}, {">>", 1, NODE_SHIFT_RIGHT},
		{"*", 3, NODE_MULTIPLY}, {"/", 3, NODE_DIVIDE},
		{"%", 3, NODE_REMAINDER}, {"+", 2, NODE_ADD},
		{"-", 2, NODE_SUBTRACT}, {"&", 0, NODE_AND},
	};
	/* C's others begin like them */
	static const char *const others[] = {
		"<<=", ">>=", "++", "--", "&&", "+=", "-=", "*=", "/=", "%=",
		"&=",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strncmp(p, others[i], strlen(others[i])) == 0)
			return NULL;
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (strncmp(p, operators[i].text,
		    strlen(operators[i].text)) == 0)
			return &operators[i];
	return NULL;
}

/* Operands with operators of this level and those above. */
static const struct node *
parse_binary(struct expression_parser *parser, unsigned level)
{
	const struct node *left = level == LEVELS ? parse_unary(parser) :
	    parse_binary(parser, level + 1);

	while (left != NULL && level < LEVELS) {
		const char *p = token_skip(parser->p);
		const struct operator *operator = operator_at(p);
		struct node node = {.left = left, .begin = left->begin,
		    .at = p};

		if (operator == NULL || operator->level != level)
			break;
		node.kind = operator->kind;
		parser->p = p + strlen(operator->text);
		node.right = parse_binary(parser, level + 1);
		left = node.right != NULL ? add(parser, &node) : NULL;
	}
	return left;
}

static const struct node *
parse_all(struct expression_parser *parser)
{
	const struct node *node;

	if (parser->depth == DEPTH_MAX)
		return fail(parser, parser->p, "this is nested too deeply");
	parser->depth++;
	node = parse_binary(parser, 0);
	parser->depth--;
	return node;
}

/* The error message for text that cannot continue an expression. */
static const char *
misplaced(const char *p)
{
	if (strncmp(p, "++", 2) == 0 || strncmp(p, "--", 2) == 0 ||
	    (*p != '\0' && strchr("+-*/%&|^<>=", *p) != NULL &&
	    strchr(p, '=') != NULL))
		return "what would change the program, or compare, is not "
		    "evaluated";
	if (*p == '?')
		return "nothing is decided here";
	return strchr(")]}", *p) != NULL ?
	    "this closes no bracket" :
	    "an operator, or :LEN, is expected";
}

static const char *
finish(struct expression_parser *parser, const char **p)
{
	*p = parser->wrong != NULL ? parser->wrong_at : token_skip(parser->p);
	if (parser->wrong != NULL)
		return parser->wrong;
	return **p == '\0' || (**p == ':' && (*p)[1] != ':') ? NULL :
	    misplaced(*p);
}

const char *
expression_parse(const char **p, struct expression *tree)
{
	struct expression_parser parser = {.tree = tree, .p = *p};

	tree->n = 0;
	tree->root = parse_all(&parser);
	return finish(&parser, p);
}

const char *
expression_parse_steps(const char **p, const char *function, size_t len,
    struct expression *tree)
{
	struct expression_parser parser = {.tree = tree, .p = *p};
	const struct node result = {
		.kind = NODE_RESULT, .text = function, .len = len,
		.begin = function, .end = function + len, .at = function,
	};

	tree->n = 0;
	tree->root = parse_steps(&parser, add(&parser, &result));
	return finish(&parser, p);
}

bool
expression_is_value(const struct node *node)
{
	switch (node->kind) {
	case NODE_NAME:
	case NODE_MEMBER:
	case NODE_ARROW:
	case NODE_INDEX:
	case NODE_ELEMENT:
	case NODE_DEREFERENCE:
		return false;
	case NODE_CAST:
		return !node->type.reference;
	case NODE_REMAINDER:	/* may be a member of Fortran's */
		return node->right->kind == NODE_NUMBER;
	default:
		return true;
	}
}

bool
expression_has_named_cast(const char *text)
{
	size_t word;

	for (const char *p = text; *p != '\0'; p += word > 0 ? word : 1) {
		word = token_word(p);
		if (word > 0 && named_cast_at(p) != NULL)
			return true;
	}
	return false;
}

bool
expression_casts(const struct node *node)
{
	while (node != NULL && node->kind != NODE_CAST)
		node = node->left;
	return node != NULL;
}
