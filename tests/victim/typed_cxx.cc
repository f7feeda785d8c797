/*
 * typed_cxx: what C++ adds to the types of variables.  It only has to be
 * loaded.
 */
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#define KEPT __attribute__((used))

namespace net {

enum class mode : unsigned char { idle, busy = 7 };
enum options : unsigned { none = 0, fast = 1, safe = 2, both = 4 };

class base {
public:
	virtual ~base();
	long id = 11;
	static int made;
	static inline int shared = 6;
};

base::~base() {}
int base::made = 3;

template <typename T, int N>
struct ring {
	T slot[N];
	unsigned head : 4, tail : 4;
};

struct derived : base {
	mode how = mode::busy;
	std::pair<int, char> both{5, 'z'};
	char16_t wide = u'\u00e9';
	long touch()
	{
		static long touched = 13;

		return touched++;
	}
};

struct left : virtual base { int l = 1; };

class roomy {			/* ends in padding, ... */
public:
	virtual ~roomy() {}
	int number = 3;
};

struct filled : roomy {		/* ... where these are */
	unsigned char own = 4;
	unsigned low : 3, high : 5;
	filled() : low(5), high(9) {}
};

KEPT derived object;
KEPT left branch;
KEPT filled tail;
KEPT ring<short, 3> small{{1, 2, 3}, 4, 5};

namespace {
KEPT int unseen = 8;
}

namespace inner {
KEPT std::atomic<long> counter{1234};
KEPT std::atomic<bool> ready{true};
}

}

using net::base;

KEPT long target = 5;
KEPT long &reference = target;
KEPT long base::*data_member = &base::id;
KEPT char32_t smile = U'\U0001F600';
KEPT net::options options = net::options(5);
KEPT std::map<int, std::string> names;
KEPT decltype(nullptr) null = nullptr;
KEPT std::string title;
struct closer { void operator()(long *) const {} };
KEPT std::unique_ptr<long, closer> owner;	/* set when it is loaded */
KEPT base *pointer = &net::object;

__attribute__((constructor)) static void
set()
{
	owner.reset(&target);
}

extern "C" long
count()
{
	static long calls = 9;

	struct local {
		static int bump()
		{
			static int inside = 10;

			return inside++;
		}
	};
	return calls++ + local::bump() + net::base::shared +
	    net::object.touch();
}
