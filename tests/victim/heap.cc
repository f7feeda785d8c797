// heap: does one wrong thing to its heap, or none, as its argument says; ends
// with status 3, unless it crashes.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <string>
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
	{"many", many_bugs}, {"handler", handler}, {"late-frees", late_frees},
	{"nothing", nothing},
};

int
main(int argc, char **argv)
{
	for (const auto &bug : bugs)
		if (argc > 1 && std::strcmp(bug.name, argv[1]) == 0)
			bug.act();
	std::puts("done");
	return 3;
}
