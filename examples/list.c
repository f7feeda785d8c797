/*
 * list: a watch that follows the first node of a list, whichever it is.
 * wp_move costs far less than closing a watch and opening another.
 *
 *	#1   write  first value (8 bytes at 0x55792cb2e2a8)  -> 12
 *	     list[7882/7882] cpu 0  +0.000345s
 *	     add+0x1f  mov %rdx, 0x8(%rax)   list.c:44
 *	     0  add   list.c:44
 *	     1  main  list.c:63
 *	     ...
 *	#2   write  first value (8 bytes at 0x55792cb2e2c8)  -> 23
 *	     ...
 *	     1  main  list.c:65
 */
#include <stdio.h>
#include <stdlib.h>
#include <watchpoint.h>

struct node {
	struct node *next;
	long value;
};

static struct node *first;
static struct wp_watch *watch;

static void
push(long value)
{
	struct node *node = malloc(sizeof(*node));

	if (node == NULL)
		abort();
	node->next = first;
	node->value = value;
	first = node;
	if (wp_move(watch, &node->value) < 0)
		fprintf(stderr, "%s\n", wp_cause());
}

static void
add(struct node *node, long value)
{
	node->value += value;
}

int
main(void)
{
	struct node bottom = {NULL, 1};
	struct wp_attr attr = {
		.size = sizeof(attr), .addr = &bottom.value,
		.len = sizeof(bottom.value), .label = "first value",
	};

	if (wp_open(&attr, &watch) < 0) {
		fprintf(stderr, "%s\n", wp_cause());
		return 1;
	}
	first = &bottom;
	push(10);
	add(first->next, 1);	/* not the first one any more */
	add(first, 2);
	push(20);
	add(first, 3);
	wp_close(watch);
	while (first != &bottom) {
		struct node *node = first;

		printf("%ld\n", node->value);
		first = node->next;
		free(node);
	}
	return 0;
}
