/*
 * typed: variables of many types, each with a value that shows.
 *
 * Says "pid PID conn ADDRESS", waits for a line on stdin, changes some of them,
 * says "done 4", and ends, with status 7, at the next line.
 */
#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <uchar.h>

#define OWN __attribute__((noinline, used))
#define KEPT __attribute__((used))

enum state { CONN_NEW, CONN_OPEN, CONN_CLOSED };
enum flags { FLAG_A = 1, FLAG_B = 2, FLAG_C = 4, FLAG_MASK = 0x30 };
enum signs { MINUS = -1, ZERO, PLUS };
enum { SMALL = 10, LARGE = 200 } unnamed = LARGE;

typedef struct conn {
	enum state state;
	int fd;
	struct conn *next;
	char name[16];
	struct {
		uint16_t port;
		uint8_t address[4];
	} peer[2];
	union {
		float level;
		uint32_t raw;
		unsigned char byte[4];
	};
	union {
		struct { short low, high; } half;
		int whole;
	} u;
	void (*close)(struct conn *, int);
} conn_t;

struct bits {
	unsigned on : 1;
	unsigned mode : 3;
	signed level : 5;
	enum state state : 4;
	bool done : 1;
	unsigned char plain;
	unsigned lone : 12;
	unsigned long wide : 40;
};

struct halves {
	int low : 5;
	int : 0;
	int high : 7;
};

struct __attribute__((packed)) packed {
	unsigned three : 3;
	unsigned long sixty : 60;
	unsigned nine : 9;	/* over the end of any unit */
};

struct wider {
	unsigned __int128 most : 100;
	unsigned five : 5;
};

struct open {
	int n;
	short data[];
};

struct large {
	long number[8];
};

struct undefined;
typedef volatile long clicks_t;
typedef int (*callback_t)(const char *, ...);

OWN static void
conn_close(struct conn *c, int how)
{
	c->fd = how;
}

KEPT signed char signed_char = -5;
KEPT unsigned char unsigned_char = 'B';
KEPT uint8_t byte = 3;
KEPT char letter = 'a', newline = '\n', quote = '\'', high = (char)0x80;
KEPT bool yes = true;
KEPT short shorter = -12345;
KEPT unsigned short ushort = 54321;
KEPT int number = -42;
KEPT unsigned unumber = 4000000000u;
KEPT long counter = -1234567890123;
KEPT unsigned long ulong = 0xfedcba9876543210;
KEPT long long longlong = 7;
KEPT clicks_t clicks = 99;
KEPT _Atomic int atomic_count = 17;
KEPT size_t size = 123;
KEPT char16_t wide16 = u'x';
KEPT char32_t wide32 = U'\u20ac';
KEPT float ratio = 0.1f;
KEPT double precise = 0.1, infinite = -__builtin_inf();
KEPT long double extended = 0.1L;
KEPT double _Complex impedance = 1.5 + 2.5 * I;
KEPT enum state state = CONN_OPEN, strange = 77;
KEPT enum flags flags = FLAG_A | FLAG_C, nothing = 0, more = 0x40 | FLAG_B,
    mask = FLAG_MASK | FLAG_A;
KEPT enum signs sign = MINUS;

KEPT long table[4] = {1, 2, 3, 4};
KEPT int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
KEPT char text[8] = "ab\n\"c";
KEPT unsigned char digest[4] = {1, 200, 'A', 0};
KEPT conn_t conns[3] = {
	{.state = CONN_NEW},
	{.state = CONN_OPEN, .fd = 5, .next = &conns[2], .name = "second",
	 .peer = {{80, {127, 0, 0, 1}}, {443, {10, 0, 0, 7}}}, .level = 0.5f,
	 .u.whole = 0x00020001, .close = conn_close},
};
struct conn conn = {.state = CONN_OPEN, .fd = 3, .next = conns};
KEPT struct bits bits = {
	.on = 1, .mode = 5, .level = -3, .state = CONN_CLOSED, .done = true,
	.plain = 9, .lone = 0xabc, .wide = 0x123456789a,
};
KEPT struct halves halves = {-3, 60};
KEPT struct packed packed = {5, 0x123456789abcdef, 300};
KEPT struct wider wider = {1, 17};
KEPT struct open open_array = {3, {10, 20, 30}};
KEPT struct large large;

KEPT const char *string = text;
KEPT void *nowhere, *inside_table = &table[2], *odd = (char *)&counter + 3;
KEPT long *element = &table[1];
KEPT struct conn *second = &conns[1];
KEPT char **pointers[2];
KEPT char *const *const fixed = NULL;
KEPT int (*no_arguments)(void);
KEPT callback_t callback = printf;
KEPT void (*closer)(struct conn *, int) = conn_close;
KEPT int (*rows)[3] = &matrix[1];
KEPT void (*(*handlers[2])(int, void (*)(int)))(int);
KEPT struct undefined *undefined;
KEPT struct { int x, y; } point = {1, -2};
KEPT __int128 huge = -((__int128)1 << 100);
KEPT unsigned __int128 enormous = ~(unsigned __int128)0;
KEPT const volatile int steady = 3;
static long hidden = 12;

OWN long
bump(void)
{
	static long calls = 21;

	{
		static int calls_inside = 22;

		calls += calls_inside++;
	}
	return calls + hidden++;
}

OWN static void
change(void)
{
	conn.state = CONN_CLOSED;
	bits.mode = 2;
	ratio = 2.5f;
	second = &conns[2];
}

int
main(void)
{
	char line[16];

	printf("pid %d conn %p\n", (int)getpid(), (void *)&conn);
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) == NULL)
		return 1;
	change();
	printf("done 4\n");
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) == NULL ? 1 : 7;
}
