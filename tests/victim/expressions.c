/*
 * expressions: objects that only an expression leads to, on the heap, in
 * functions, in bit-fields.
 *
 * Says "pid PID heap ADDRESS", waits for a line on stdin, changes some of them,
 * says "done 3", and ends, with status 7, at the next line.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OWN __attribute__((noinline, used))
#define KEPT __attribute__((used))

enum state { CONN_NEW, CONN_OPEN = 2, CONN_CLOSED };
enum { ROWS = 3 };

struct list {
	int len;
	struct list *next;
};

struct elsewhere;

typedef struct conn {
	enum state state;
	int fd;
	struct conn *next;
	char name[12];
	unsigned on : 1, mode : 9;
	struct { short low, high; };
	union { float level; uint32_t raw; } u;
	struct elsewhere *opaque;
} conn_t;

struct flexible {
	int n;
	short data[];
};

struct server {
	struct list *clients;
	long total;
	conn_t table[4];
};

KEPT struct server server = {.total = 5};
KEPT static struct server *own = &server;
KEPT conn_t *heads[130], **second = &heads[5], *nobody;
KEPT long numbers[4][5];
KEPT int at = 3;
KEPT unsigned char narrow = 200;
KEPT void *anything = &server;
KEPT struct flexible *flexible;
KEPT int (*rows)[5];
static int never_read;	/* the compiler leaves it out */

OWN static int
bump(int by)
{
	static int calls;
	static struct list chain;

	chain.len += by;
	never_read = by;
	return calls += by;
}

OWN static void
change(void)
{
	server.clients->len = 41;
	heads[129]->state = CONN_CLOSED;
	bump(2);
}

int
main(void)
{
	char line[16];

	server.clients = calloc(1, sizeof(*server.clients));
	server.clients->next = calloc(1, sizeof(*server.clients));
	heads[5] = heads[129] = calloc(1, sizeof(*heads[0]));
	flexible = calloc(1, 64);
	rows = calloc(ROWS, sizeof(*rows));
	printf("pid %d heap %p\n", (int)getpid(), (void *)heads[129]);
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) == NULL)
		return 1;
	change();
	printf("done 3\n");
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) == NULL ? 1 : 7;
}
