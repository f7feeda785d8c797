/*
 * expressions_cxx: what only C++ has: classes in namespaces, templates, base
 * classes, references, the members of the library's types.
 *
 * Says "pid PID heap ADDRESS", waits for a line on stdin, writes a member, and
 * ends, with status 7.
 */
#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace ns {

template <typename T, int N> struct Box {
	T value[N];
	static int count;
};
template <typename T, int N> int Box<T, N>::count = 3;

struct Base {
	virtual ~Base() {}
	int id;
	static long made;
};
long Base::made = 2;

struct Other {
	long weight;
	int id;
};

struct Class : Base, Other {
	double ratio;
	static int total;
	Box<int, 3> box;
	std::vector<int> list;
	std::unique_ptr<Box<long, 2>> own;
	Class *peer;
};

int Class::total = 7;
Class object;
Class &reference = object;
Base *base = &object;

struct Virtual : virtual Base {
	int x;
} virtuals, *virtual_one = &virtuals;

struct Hides : virtual Base {
	long id;
	static int shared;
};
int Hides::shared = 4;

/* Base is there once, behind all the others. */
template <typename T> struct Diamond : Other, Virtual, virtual Hides {
	T value;
};
Diamond<short> diamond;
Virtual *upper = &diamond;
const Other *other = &object;
typedef Other Renamed;
Renamed *renamed = &diamond;
Virtual *nothing_yet;

namespace inner {
struct Deep { int x; } deep;
}

}

namespace {
struct Anonymous { int a; } anonymous;
}

namespace lib {
inline namespace v2 {

template <typename T, typename U = long, int N = 2> struct Pair {
	T first[N];
	U second;
};
struct Plain { int x, y; } plain;
Pair<char> pair;

}
}

ns::Box<int, 3> box;
ns::Box<unsigned long, 2> *boxes[6];
std::atomic<long> hits;
std::array<int, 4> array;
std::string name = "hello";
std::vector<ns::Class *> classes;
std::map<int, std::string> map = {{1, "one"}, {2, "two"}};

struct Holder {
	int &r;
} holder{box.value[1]};

__attribute__((noinline)) static int
work(int by)
{
	static int calls;

	return calls += by;
}

int
main()
{
	char line[16];

	ns::object.list = {1, 2, 3};
	lib::pair.second = lib::plain.y = 4;
	ns::object.peer = &ns::object;
	ns::object.own.reset(new ns::Box<long, 2>());
	boxes[2] = new ns::Box<unsigned long, 2>();
	ns::nothing_yet = static_cast<ns::Virtual *>(
	    static_cast<void *>(boxes[2]));
	classes.push_back(&ns::object);
	ns::Box<int, 3>::count += anonymous.a++ + work(2);
	printf("pid %d heap %p\n", static_cast<int>(getpid()),
	    static_cast<void *>(boxes[2]));
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) == nullptr)
		return 1;
	ns::upper->id = 5;
	return 7;
}
