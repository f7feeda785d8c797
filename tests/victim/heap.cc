// heap: does one wrong thing to its heap, or none, as its argument says; ends
// with status 3, unless it crashes.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static volatile std::size_t forty = 40;

// The callers that reports are to show.
__attribute__((noinline)) static char *
make_block()
{
	char *volatile p = static_cast<char *>(std::malloc(forty));

	return p;
}

__attribute__((noinline)) static void
drop_block(char *p)
{
	std::free(p);
	__asm__ volatile("" ::: "memory");
}

static void
one_past()
{
	char *p = make_block();

	static_cast<volatile char *>(p)[43] = 'a';
	drop_block(p);
}

static void
by_strcpy()
{
	std::strcpy(make_block(), std::string(40, 'x').c_str());
}

static void
by_memcpy()
{
	char text[64] = "a text that is longer than the block for which it is";

	std::memcpy(make_block() + 1, text, forty + 3);
}

static void
underflow()
{
	char *p = make_block();

	static_cast<volatile char *>(p)[-3] = 'u';
	drop_block(p);
}

static void
after_free()
{
	volatile char *p = make_block();

	drop_block(const_cast<char *>(p));
	p[7] = 'f';
}

static void
after_realloc()
{
	volatile char *p = make_block();
	void *volatile more = std::realloc(const_cast<char *>(p), 4000);

	p[9] = 'r';
	std::free(more);
}

static void
double_free()
{
	char *volatile p = make_block();

	drop_block(p);
	drop_block(p);
}

static void
invalid_free()
{
	char *volatile p = make_block();

	drop_block(p + 16);
}

static void
mismatch()
{
	int *volatile p = new int[10];

	std::free(p);
}

static void
in_child()
{
	char *p = make_block();

	if (fork() == 0) {
		static_cast<volatile char *>(p)[40] = 'c';
		_exit(0);
	}
	(void)wait(nullptr);
	drop_block(p);
}

static void
in_thread()
{
	std::thread([] {
		static_cast<volatile char *>(make_block())[41] = 't';
	}).join();
}

static void
before_abort()
{
	static_cast<volatile char *>(make_block())[42] = 'a';
	std::abort();
}

static void
before_crash()
{
	static_cast<volatile char *>(make_block())[42] = 'a';
	*const_cast<int *volatile>(static_cast<int *>(nullptr)) = 1;
}

static void
before_exec()
{
	static_cast<volatile char *>(make_block())[42] = 'e';
	(void)execl("/bin/sh", "sh", "-c", "exit 3",
	    static_cast<char *>(nullptr));
}

static void
before_quick_exit()
{
	static_cast<volatile char *>(make_block())[42] = 'q';
	std::quick_exit(3);
}

static void
many_blocks()
{
	for (int i = 0; i < 500000; i++)
		(void)make_block();
}

static void
by_read()
{
	const char text[42] = "r";
	int ends[2];
	char *p = make_block();

	if (pipe(ends) != 0 || write(ends[1], text, 41) != 41)
		std::abort();
	(void)!read(ends[0], p + 40, 1);
}

/* What recv returns is more than what it writes. */
static void
before_truncation()
{
	const char text[60] = "r";
	int ends[2];
	char *p = make_block();

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0 ||
	    write(ends[1], text, sizeof(text)) != sizeof(text))
		std::abort();
	static_cast<volatile char *>(p)[40] = 'r';
	if (recv(ends[0], p, 40, MSG_TRUNC) != sizeof(text))
		std::abort();
}

// Blocks of as many sizes.
static void
many_reads()
{
	const std::string text(100, 'r');
	int ends[2];

	if (pipe(ends) != 0 || write(ends[1], text.data(), 100) != 100)
		std::abort();
	for (forty = 1; forty <= 100; forty = forty + 1) {
		char *p = make_block();

		(void)!read(ends[0], p + forty, 1);
		drop_block(p);
	}
}

static void
new_array()
{
	volatile char *p = new char[forty];

	p[forty] = 'n';
	delete[] p;
}

// Both threads' blocks are their first.
static void
two_writers()
{
	char *blocks[2];

	for (int i = 0; i < 2; i++)
		std::thread([i, &blocks] {
			volatile char *p = make_block();

			p[41] = i == 0 ? 'f' : 'g';
			blocks[i] = const_cast<char *>(p);
		}).join();
	drop_block(blocks[0]);
	drop_block(blocks[1]);
}

// One instruction writes behind a block and in front of the next one; it leaves
// what the allocator keeps between them as it was.
static void
across_two()
{
	typedef unsigned char bytes __attribute__((vector_size(16), aligned(1),
	    may_alias));
	constexpr int size = 600, apart = 640;
	char *volatile block[7];	// what glibc keeps of one size

	// The two are from freed blocks, which were beside each other: a watch
	// that is opened between them allocates memory of other sizes.
	for (auto &p : block)
		p = static_cast<char *>(std::malloc(size));
	for (const auto &p : block)
		std::free(p);
	block[0] = static_cast<char *>(std::malloc(size));
	block[1] = static_cast<char *>(std::malloc(size));
	if (block[0] - block[1] != apart)
		std::exit(77);	// they are not beside each other
	*reinterpret_cast<volatile bytes *>(block[0] - 28) ^= bytes{1, 0, 0, 0,
	    0, 0, 0, 0, 0, 0, 0, 0, 1};
}

// Children are made while threads have the first watch opened.
static void
forks()
{
	static const auto work = [] {
		for (int i = 0; i < 2000; i++) {
			volatile char *p = make_block();

			if (i == 1500)
				p[41] = 'f';
			drop_block(const_cast<char *>(p));
		}
	};
	std::vector<std::thread> threads;

	for (int t = 0; t < 4; t++)
		threads.emplace_back(work);
	for (int i = 0; i < 60; i++)
		if (fork() == 0) {
			work();
			_exit(0);
		}
	for (auto &thread : threads)
		thread.join();
	while (wait(nullptr) > 0)
		;
}

// Threads share a queue of jobs, one of which is bad: which thread executes it,
// and after how many others, differs from run to run.
static void
in_queue()
{
	static std::atomic<int> next;
	std::vector<std::thread> threads;

	for (int t = 0; t < 4; t++)
		threads.emplace_back([] {
			for (int job; (job = next++) < 400;) {
				volatile char *p = make_block();

				std::this_thread::yield();
				if (job == 237)
					p[41] = 'j';
				drop_block(const_cast<char *>(p));
			}
		});
	for (auto &thread : threads)
		thread.join();
}

// A server of four threads that after a while gives answers that are too long.
static void
serves()
{
	static std::atomic<int> next;
	std::vector<std::thread> threads;

	for (int t = 0; t < 4; t++)
		threads.emplace_back([] {
			for (int i; (i = next++) < 2000;) {
				volatile char *p = make_block();

				if (i >= 100 && i % 2 != 0)
					p[42] = 's';
				drop_block(const_cast<char *>(p));
				(void)usleep(1000);
			}
		});
	for (auto &thread : threads)
		thread.join();
}

// Ended before its blocks are looked at.
static void
before_kill()
{
	static_cast<volatile char *>(make_block())[42] = 'k';
	(void)raise(SIGKILL);
}

// Leaves a process behind that is nobody's, but not in the first run; its
// number is in the file of this name.
static const char *left;

static void
leaves()
{
	volatile char *p = make_block();
	int ends[2];
	char c;

	p[41] = 'l';
	if (std::getenv("WATCHPOINT_FAMILY") == nullptr || pipe(ends) != 0)
		return;
	if (fork() == 0) {
		std::FILE *f = std::fopen(left, "w");

		(void)setsid();
		std::fprintf(f, "%d", static_cast<int>(getpid()));
		(void)std::fclose(f);
		(void)!write(ends[1], "", 1);
		(void)alarm(60);
		for (;;)
			(void)pause();
	}
	(void)!read(ends[0], &c, 1);
}

// Reads a line of its standard input by the byte.
static void
reads()
{
	char c = 0;

	one_past();
	while (c != '\n' && read(0, &c, 1) == 1)
		(void)!write(1, &c, 1);
}

// Another thread ends the process, too, while its blocks are looked at.
static void
two_exits()
{
	static std::atomic<bool> ending;

	many_blocks();
	static_cast<volatile char *>(make_block())[42] = '2';
	std::thread([] {
		while (!ending)
			;
		_exit(3);
	}).detach();
	(void)std::atexit([] { ending = true; });
	std::exit(3);
}

static void
many_bugs()
{
	for (int i = 0; i < 300; i++)
		static_cast<volatile char *>(make_block())[-3] = 'm';
}

// A rare one comes behind frequent ones, of two kinds.
static void
many_and_one()
{
	for (int i = 0; i < 300; i++) {
		char *p = make_block();

		static_cast<volatile char *>(p)[41] = 'm';
		drop_block(p);
		drop_block(p);
	}
	one_past();
}

// By callers that differ in how many they are.
__attribute__((noinline)) static char *
make_below(int depth)
{
	char *volatile p = depth == 0 ? static_cast<char *>(std::malloc(64)) :
	    make_below(depth - 1);

	return p;
}

// No two of them are alike.
static void
many_kinds()
{
	for (int i = 0; i < 300; i++) {
		char *volatile p = make_below(i / 60);

		drop_block(p);
		static_cast<volatile char *>(p)[i % 60] = 'm';
	}
}

// A handler frees while the blocks are looked at.
static void
handler()
{
	many_blocks();
	std::signal(SIGALRM, [](int) { drop_block(make_block()); });
	(void)std::atexit([] {
		const itimerval often = {{0, 500}, {0, 500}};

		(void)setitimer(ITIMER_REAL, &often, nullptr);
	});
}

static long
mapped_pages()
{
	std::FILE *f = std::fopen("/proc/self/statm", "r");
	long pages = 0;

	if (f == nullptr || std::fscanf(f, "%ld", &pages) != 1)
		std::abort();
	(void)std::fclose(f);
	return pages;
}

static pthread_key_t key;

// Threads that free up to their very end leave nothing behind.
static void
late_frees()
{
	long before = 0;

	(void)mallopt(M_ARENA_MAX, 1);
	(void)pthread_key_create(&key, [](void *p) {
		drop_block(make_block());
		(void)pthread_setspecific(key, p);
	});
	for (int i = 0; i < 500; i++) {
		std::thread([] {
			(void)pthread_setspecific(key, &key);
		}).join();
		if (i == 100)
			before = mapped_pages();
	}
	if (mapped_pages() - before > 2500)
		std::abort();
}

struct alignas(64) wide {
	char text[100];
};

static void
expect_errno(const char *what)
{
	if (errno != EXDEV) {
		std::printf("%s sets errno to %d\n", what, errno);
		std::abort();
	}
}

// Frees what is whole, what is not, and what is none.
static void
keep_errno()
{
	char *volatile p = make_block();

	for (int i = 0; i < 20000; i++) {
		void *volatile block = std::malloc(i % 500 == 0 ?
		    1 << 20 : i % 1000);

		errno = EXDEV;
		std::free(block);
		expect_errno("free");
	}
	p[41] = 'e';
	errno = EXDEV;
	drop_block(p);
	expect_errno("free of a damaged block");
	drop_block(p);
	expect_errno("a second free");
	std::thread([] {
		void *volatile block = new wide;

		errno = EXDEV;
		delete static_cast<wide *>(block);
		expect_errno("delete");
	}).join();
}


// All that is allowed.
static void
nothing()
{
	std::vector<std::thread> threads;

	for (int t = 0; t < 4; t++)
		threads.emplace_back([] {
			std::vector<std::string> all;

			for (int i = 0; i < 2000; i++)
				all.push_back(std::string(i % 100, 'a'));
			delete new wide;
			delete[] new wide[3];
			delete[] new (std::nothrow) char[17];
		});
	for (int i = 0; i < 20; i++)
		if (fork() == 0)
			_exit(std::string(i, 'b').size() != std::size_t(i));
	for (auto &thread : threads)
		thread.join();
	for (int i = 0; i < 20; i++) {
		int status = 0;

		if (wait(&status) < 0 || status != 0)
			std::abort();
	}
	try {
		char *volatile none = new char[std::size_t(1) << 60];

		delete[] none;
	} catch (const std::bad_alloc &) {
	}
	void *p = nullptr;
	if (posix_memalign(&p, 4096, 100) != 0 ||
	    reinterpret_cast<std::size_t>(p) % 4096 != 0)
		std::abort();
	std::memset(p, 1, 100);
	std::free(p);
	if (std::system("exit 0") != 0)
		std::abort();
}

static const struct {
	const char *name;
	void (*act)();
} bugs[] = {
	{"one-past", one_past}, {"strcpy", by_strcpy}, {"memcpy", by_memcpy},
	{"underflow", underflow}, {"after-free", after_free},
	{"after-realloc", after_realloc}, {"double-free", double_free},
	{"invalid-free", invalid_free}, {"mismatch", mismatch},
	{"child", in_child}, {"thread", in_thread}, {"abort", before_abort},
	{"crash", before_crash}, {"exec", before_exec},
	{"quick-exit", before_quick_exit}, {"two-exits", two_exits},
	{"many", many_bugs}, {"many-and-one", many_and_one},
	{"many-kinds", many_kinds}, {"handler", handler}, {"late-frees", late_frees},
	{"read", by_read}, {"many-reads", many_reads},
	{"truncation", before_truncation}, {"new-array", new_array},
	{"reads", reads}, {"queue", in_queue}, {"two-writers", two_writers},
	{"across-two", across_two},
	{"serves", serves}, {"kill", before_kill}, {"forks", forks},
	{"leaves", leaves},
	{"errno", keep_errno}, {"nothing", nothing},
};

int
main(int argc, char **argv)
{
	left = argc > 2 ? argv[2] : "/dev/null";
	for (const auto &bug : bugs)
		if (argc > 1 && std::strcmp(bug.name, argv[1]) == 0)
			bug.act();
	std::puts("done");
	return 3;
}
