/*
 * ledger: a C++ victim, with exceptions thrown through several frames on
 * several threads.
 *
 * Says "pid PID balance ADDRESS", waits for a line on stdin, works, says
 * "writes N caught N balance N" and ends with status 3.  Every write
 * of the balance is under a lock: what it says is the same in every run.
 */
#include <cstdio>
#include <functional>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#define OWN __attribute__((noinline))

volatile long balance;

namespace ledger {

std::mutex lock;
long writes, caught;

/* Written to wherever it is inlined. */
template <typename Amount>
inline void
add(Amount by)
{
	const std::lock_guard<std::mutex> guard(lock);

	writes++;
	balance = balance + static_cast<long>(by);
}

/* Writes when it goes, also while an exception passes by. */
class Account {
	std::string name;
public:
	OWN explicit Account(std::string n) : name(std::move(n)) {}
	OWN ~Account() { add(static_cast<int>(name.size())); }
	Account(const Account &) = delete;
	OWN void deposit(long amount) { add(amount); }
	template <typename Amount> OWN void withdraw(Amount amount)
	{
		add(-amount);
	}
};

struct Refused : std::runtime_error {
	int depth;
	Refused(const std::string &why, int d) :
	    std::runtime_error(why), depth(d) {}
};

OWN void
transfer(int depth, const std::string &name)
{
	Account account(name + (depth % 2 == 0 ? "" :
	    ", a name that is too long to be kept in the string itself"));

	account.deposit(depth);
	if (depth == 0)
		throw Refused("no money for " + name, depth);
	try {
		transfer(depth - 1, name);
	} catch (const Refused &refused) {
		if (depth % 3 != 0)
			throw;
		throw Refused(refused.what(), depth);
	}
}

/* A message as a number, so that a wrong one shows. */
OWN long
weigh(const std::string &text)
{
	long sum = 0;

	for (const char c : text)
		sum += c;
	return sum;
}

OWN void
attempt(int depth)
{
	Account account("attempt");

	account.withdraw(2.0);
	try {
		transfer(depth, "Bob");
	} catch (const std::exception &e) {
		[&e] { add(weigh(e.what())); }();
		const std::lock_guard<std::mutex> guard(lock);
		caught++;
	}
}

} /* namespace ledger */

static void
work(const std::function<void(int)> &each)
{
	for (int i = 0; i < 20; i++)
		each(i % 7);
}

int
main()
{
	std::vector<std::thread> threads;
	std::string line;

	std::printf("pid %d balance %p\n", static_cast<int>(getpid()),
	    const_cast<long *>(&balance));
	std::fflush(stdout);
	std::getline(std::cin, line);
	for (int i = 0; i < 3; i++)
		threads.emplace_back(work, ledger::attempt);
	for (auto &thread : threads)
		thread.join();
	std::printf("writes %ld caught %ld balance %ld\n", ledger::writes,
	    ledger::caught, balance);
	return 3;
}
