/*
 * channel: a program and a helper, two processes, share a channel.
 *
 * The helper is a child of the test, and the program is the test itself.  A hit
 * is a number that the program puts into nth, and the reply is that number.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "channel_server.h"

enum { WRITERS = 6, EACH = 500, LONG = 60 * 1000 };

/* A channel, and what its helper reports beside it. */
static struct shared {
	volatile uint64_t next[WRITERS];	/* of each, nth that is due */
	volatile unsigned wrong, empty, served, asked;
} *shared;

SHARED_FIXTURE

static int
setup(void **state)
{
	(void)state;
	memset((void *)shared, 0, sizeof(*shared));
	channel_open();
	assert_int_equal(wp_channel_join(channel), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)children_end(state);
	channel_close();
	return 0;
}

/* Each writer's hits have to come in order, none missing. */
static void
explain(struct wp_cell *cell)
{
	unsigned writer = cell->watch.index;

	if (cell->record.header.type == 0) {
		shared->empty++;
		return;
	}
	if (writer >= WRITERS || cell->nth != shared->next[writer]++)
		shared->wrong++;
	(void)snprintf(cell->reply, sizeof(cell->reply), "%u:%llu", writer,
	    (unsigned long long)cell->nth);
	shared->served++;
}

static int
answer(struct wp_channel *mine)
{
	shared->asked++;
	return mine->request.tid;
}

static const struct server server = {explain, answer};

/* Hand over a hit.  Its cell, or NULL without a helper. */
static struct wp_cell *
post(unsigned writer, uint64_t nth, uint32_t flags, uint32_t *ticket)
{
	struct wp_cell *cell = wp_channel_take(channel, ticket);

	if (cell == NULL)
		return NULL;
	cell->flags = flags;
	cell->nth = nth;
	cell->watch = (struct wp_cell_watch){.index = (uint16_t)writer};
	cell->nalso = 0;
	cell->record.header = (struct perf_event_header){
		.type = PERF_RECORD_SAMPLE, .size = 8,
	};
	wp_channel_post(channel, cell, *ticket);
	return cell;
}

/* The same, and wait as its flags have it.  false: no helper, or a wrong
   reply. */
static bool
hit(unsigned writer, uint64_t nth, uint32_t flags)
{
	char expected[32];
	uint32_t ticket;
	struct wp_cell *cell = post(writer, nth, flags, &ticket);
	bool same = true;

	if (cell == NULL || ((flags & WP_CELL_WAITS) != 0 &&
	    !wp_channel_wait(channel, cell, ticket)))
		return false;
	if ((flags & WP_CELL_REPLY) != 0) {
		(void)snprintf(expected, sizeof(expected), "%u:%llu", writer,
		    (unsigned long long)nth);
		same = strcmp(cell->reply, expected) == 0;
		wp_channel_give(cell, ticket);
	}
	return same;
}

TEST_WITH(what_is_no_channel_is_refused, setup, teardown)
{
	struct wp_channel *other;
	int fd;

	assert_int_equal(wp_channel_map(-1, &other), -EPROTO);
	/* of the right size, but it could shrink */
	fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(*other)), 0);
	assert_int_equal(wp_channel_map(fd, &other), -EPROTO);
	/* it cannot, and holds nothing */
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(wp_channel_map(fd, &other), -EPROTO);
	(void)close(fd);
	/* too short */
	fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(wp_channel_map(fd, &other), -EPROTO);
	(void)close(fd);

	channel->version++;
	assert_int_equal(wp_channel_map(channel_memory, &other), -EPROTO);
	channel->version--;
	channel->magic++;
	assert_int_equal(wp_channel_map(channel_memory, &other), -EPROTO);
	channel->magic--;
	assert_int_equal(wp_channel_map(channel_memory, &other), 0);
	wp_channel_unmap(other);
}

TEST_WITH(the_memory_stays_as_it_is, setup, teardown)
{
	static const struct { uint32_t asked, has; } stacks[] = {
		{0, 0}, {8192, 8192}, {8191, 8184}, {16384, 16384},
		{16385, 16384}, {UINT32_MAX, 16384},
	};

	assert_int_equal(ftruncate(channel_memory, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fcntl(channel_memory, F_GETFD) & FD_CLOEXEC,
	    FD_CLOEXEC);
	for (size_t i = 0; i < COUNT(stacks); i++) {
		struct wp_channel *other;
		int fd = wp_channel_make(stacks[i].asked);

		assert_int_equal(wp_channel_map(fd, &other), 0);
		assert_int_equal(other->stack, stacks[i].has);
		wp_channel_unmap(other);
		(void)close(fd);
	}
}

/* identifier, ip, pid and tid, time, addr, cpu; registers and their abi; the
   stack's size, the stack, and how much of it there is. */
TEST_WITH(a_cell_has_room_for_the_longest_record, setup, teardown)
{
	struct perf_event_attr attr;
	size_t size;

	wp_channel_attr(&attr);
	assert_int_equal(attr.sample_stack_user, WP_STACK_MAX);
	assert_int_equal(attr.sample_type & (PERF_SAMPLE_CALLCHAIN |
	    PERF_SAMPLE_REGS_INTR), 0);
	size = sizeof(struct perf_event_header) + 6 * 8 + 8 + 8u *
	    (unsigned)__builtin_popcountll(attr.sample_regs_user) + 8 +
	    attr.sample_stack_user + 8;
	assert_in_range(size, WP_STACK_MAX, WP_RECORD_MAX);
}

static void *
write_hits(void *arg)
{
	unsigned writer = (unsigned)(uintptr_t)arg;
	/* half of them wait, and half of these for a reply */
	const uint32_t flags = writer % 2 == 0 ? 0 : writer % 4 == 1 ?
	    WP_CELL_WAITS : WP_CELL_WAITS | WP_CELL_REPLY;

	for (uint64_t nth = 0; nth < EACH; nth++)
		if (!hit(writer, nth, flags))
			return arg;
	return NULL;
}

TEST_WITH(every_hit_comes_once_and_in_order, setup, teardown)
{
	pthread_t thread[WRITERS];
	void *failed;

	/* tickets come round on the way */
	channel->ticket = channel->served = (uint32_t)-(WRITERS * EACH / 2);
	for (uint32_t i = channel->ticket; i != channel->ticket + WP_CELLS; i++)
		channel->cell[i % WP_CELLS].turn = i;
	channel_start_helper(&server);
	for (uintptr_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_hits,
		    (void *)i), 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
	await(shared->served == WRITERS * EACH);
	channel_end_helper();
	assert_int_equal(shared->wrong, 0);
	for (unsigned i = 0; i < WRITERS; i++)
		assert_int_equal(shared->next[i], EACH);
}

/* More than there are cells, and nobody reads. */
TEST_WITH(when_all_is_full_writers_wait, setup, teardown)
{
	pthread_t thread;
	void *failed;

	*channel_deaf = true;
	channel_start_helper(&server);
	assert_int_equal(pthread_create(&thread, NULL, write_hits, (void *)0),
	    0);
	await(channel->ticket == WP_CELLS + 1);
	nap_us(2000);
	assert_int_equal(channel->ticket, WP_CELLS + 1);
	assert_int_equal(shared->served, 0);
	*channel_deaf = false;
	wp_channel_ring(channel);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	await(shared->served == EACH);
	channel_end_helper();
	assert_int_equal(shared->wrong, 0);
}

/* The cell of a reply is not used again before that was read. */
TEST_WITH(a_reply_is_kept_until_it_is_read, setup, teardown)
{
	struct wp_cell *cell;
	pthread_t thread;
	uint32_t ticket;
	void *failed;

	channel_start_helper(&server);
	cell = post(2, 0, WP_CELL_REPLY, &ticket);
	assert_true(wp_channel_wait(channel, cell, ticket));
	assert_int_equal(pthread_create(&thread, NULL, write_hits, (void *)0),
	    0);
	await(shared->served == WP_CELLS);
	await(channel->ticket == WP_CELLS + 1);
	nap_us(2000);
	assert_int_equal(shared->served, WP_CELLS);
	assert_string_equal(cell->reply, "2:0");
	wp_channel_give(cell, ticket);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	await(shared->served == EACH + 1);
	channel_end_helper();
	assert_int_equal(shared->wrong, 0);
}

TEST_WITH(requests_are_answered, setup, teardown)
{
	channel_start_helper(&server);
	for (int i = 0; i < 100; i++) {
		channel->request.tid = i - 50;
		assert_int_equal(wp_channel_ask(channel), i - 50);
	}
	assert_false(wp_channel_asked(channel));
	channel_end_helper();
	assert_int_equal(shared->asked, 100);
}

/* If the helper slept over it, this would take a minute. */
TEST_WITH(a_bell_before_sleep_is_heard, setup, teardown)
{
	uint64_t began = wp_clock_ns();
	uint32_t heard = 0;

	for (unsigned i = 0; i < 1000; i++) {
		wp_channel_ring(channel);
		wp_channel_sleep(channel, &heard, LONG);
	}
	assert_true(wp_clock_ns() - began < LONG * 1000000ull);
	assert_int_equal(heard, 1000);
}

TEST_WITH(without_a_helper_nothing_waits, setup, teardown)
{
	uint32_t ticket;

	assert_false(wp_channel_alive(channel));
	assert_null(wp_channel_take(channel, &ticket));
	assert_int_equal(wp_channel_ask(channel), -EPIPE);
	assert_int_equal(wp_channel_await(channel, 1), -ETIMEDOUT);
}

/* What a thread of the program does when the helper dies. */
static void *
take_one(void *arg)
{
	uint32_t ticket;

	(void)arg;
	return wp_channel_take(channel, &ticket);
}

static void *
ask(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)wp_channel_ask(channel);
}

static void *
wait_for_first(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)wp_channel_wait(channel, &channel->cell[0],
	    0);
}

TEST_WITH(whoever_waits_learns_that_the_helper_died, setup, teardown)
{
	static const struct {
		void *(*fn)(void *);
		intptr_t result;
	} waiters[] = {
		{take_one, 0}, {ask, -EPIPE}, {wait_for_first, false},
	};
	pthread_t thread[COUNT(waiters)];

	*channel_deaf = true;
	channel_start_helper(&server);
	for (unsigned i = 0; i < WP_CELLS; i++)
		assert_true(hit(0, i, 0));
	for (size_t i = 0; i < COUNT(waiters); i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
		    waiters[i].fn, NULL), 0);
	await(channel->ticket == WP_CELLS + 1 && channel->request.state == 1);
	nap_us(2000);
	assert_true(wp_channel_alive(channel));
	child_kill(channel_helper);
	for (size_t i = 0; i < COUNT(waiters); i++) {
		void *result;

		assert_int_equal(pthread_join(thread[i], &result), 0);
		assert_true((intptr_t)result == waiters[i].result);
	}
	assert_false(wp_channel_alive(channel));
	assert_int_equal(wp_channel_await(channel, CHILD_PATIENCE_MS), -EPIPE);
}

/* Its own end is no other: the thread that serves, not the process, counts. */
static void *
serve_and_end(void *arg)
{
	wp_channel_serve(channel);
	return arg;
}

TEST_WITH(a_helper_is_a_thread, setup, teardown)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, serve_and_end, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_not_equal(channel->ready, 0);
	assert_false(wp_channel_alive(channel));
}

static void
post_in_child(void *arg)
{
	(void)arg;
	if (wp_channel_alive(channel) ||
	    wp_channel_ask(channel) != -EPIPE ||
	    wp_channel_join(channel) != -EBUSY)
		_exit(1);
}

TEST_WITH(a_child_of_the_program_has_no_helper, setup, teardown)
{
	channel_start_helper(&server);
	assert_int_equal(child_wait(child_start(post_in_child, NULL)), 0);
	assert_true(hit(0, 0, WP_CELL_WAITS));
	channel_end_helper();
	assert_int_equal(shared->served, 1);
}

/* After execve(2), what threads had begun in the former image is not finished,
   and yet the queue goes on. */
TEST_WITH(what_execve_left_is_cleared_away, setup, teardown)
{
	struct wp_cell *cell;
	uint32_t ticket;

	channel_start_helper(&server);
	cell = post(0, 0, WP_CELL_REPLY, &ticket);	/* not read */
	assert_true(wp_channel_wait(channel, cell, ticket));
	assert_non_null(wp_channel_take(channel, &ticket));	/* not filled */
	for (unsigned i = 0; i < WP_CELLS - 3; i++)	/* behind that */
		assert_non_null(post(1, i, i % 2 == 0 ? 0 : WP_CELL_REPLY,
		    &ticket));
	assert_non_null(wp_channel_take(channel, &ticket));	/* not filled */
	(void)atomic_fetch_add(&channel->ticket, 2);	/* and two wait */
	channel->watch[3].serial = 7;
	channel->request.state = 1;

	assert_int_equal(wp_channel_join(channel), 0);
	assert_int_equal(channel->watch[3].serial, 0);
	assert_int_equal(channel->request.state, 0);
	for (unsigned i = 0; i < 3 * WP_CELLS; i++)
		assert_true(hit(2, i, WP_CELL_WAITS | WP_CELL_REPLY));
	channel_end_helper();
	assert_int_equal(shared->wrong, 0);
	assert_int_equal(shared->empty, 3);
	assert_int_equal(shared->served, 1 + WP_CELLS - 3 + 3 * WP_CELLS);
}

/* The program died while one thread was filling its cell. */
TEST_WITH(what_a_dead_program_filled_is_served, setup, teardown)
{
	struct wp_cell *cell;
	uint32_t ticket;
	uint64_t nth = 0;

	wp_channel_serve(channel);
	for (unsigned i = 0; i < 12; i++)
		if (i % 3 == 0)
			assert_non_null(wp_channel_take(channel, &ticket));
		else
			assert_true(hit(0, nth++, 0));
	assert_null(wp_channel_next(channel));
	while ((cell = wp_channel_next(channel)) != NULL ||
	    wp_channel_skip(channel)) {
		if (cell != NULL) {
			explain(cell);
			wp_channel_done(channel, cell);
		}
	}
	assert_int_equal(shared->served, nth);
	assert_int_equal(shared->wrong, 0);
}

/* A program whose files may not grow goes on without a helper. */
static void
make_small(void *unused)
{
	const struct rlimit none = {0, 0};
	sigset_t pending;

	(void)unused;
	(void)signal(SIGXFSZ, SIG_DFL);
	_exit(setrlimit(RLIMIT_FSIZE, &none) == 0 &&
	    wp_channel_make(4096) == -EFBIG && sigpending(&pending) == 0 &&
	    sigismember(&pending, SIGXFSZ) == 0 ? 0 : 1);
}

TEST(files_that_may_not_grow)
{
	assert_int_equal(child_wait(child_start(make_small, NULL)), 0);
}

/* A child that is waited for is not forgotten unnoticed. */
TEST_WITH(more_children_than_there_is_room_for, setup, teardown)
{
	struct wp_creation first = {.at = NULL};

	for (unsigned i = 0; i < WP_MAKINGS_MAX; i++) {
		const struct wp_creation now = wp_creation_begin(channel,
		    WP_MAKES_WATCHED);

		if (i == 0)
			first = now;
		wp_creation_appear(now);
		wp_creation_end(now);
		if (i % 2 != 0)
			wp_creation_settle(now);
	}
	assert_true(wp_creation_pending(channel));
	assert_int_equal(channel->forgotten, 0);
	(void)wp_creation_begin(channel, WP_MAKES_FORK);
	assert_int_equal(channel->forgotten, 1);
	wp_creation_settle(first);	/* which is another's now */
	(void)wp_creation_begin(channel, WP_MAKES_FORK);
	assert_int_equal(channel->forgotten, 1);
}

RUN_TESTS()
