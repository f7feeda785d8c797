/*
 * containers: a victim to be stepped: it stops itself, then works with strings,
 * containers, streams and exceptions, without end.
 */
#include <algorithm>
#include <csignal>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#define OWN __attribute__((noinline))

static volatile long sink;

struct Shape {
	virtual ~Shape() {}
	virtual double area() const = 0;
};

struct Square : Shape {
	explicit Square(double s) : side(s) {}
	double area() const override { return side * side; }
	double side;
};

struct Circle : Shape {
	explicit Circle(double r) : radius(r) {}
	double area() const override { return 3 * radius * radius; }
	double radius;
};

OWN static void
maps(unsigned n)
{
	std::map<std::string, int> tree;
	std::unordered_map<int, std::string> hash;
	std::set<long> set;

	for (unsigned i = 0; i < 12; i++) {
		const std::string key = "key" + std::to_string(i * n % 17);

		tree[key] += static_cast<int>(i);
		hash.emplace(static_cast<int>(i * 31 + n), key);
		set.insert(static_cast<long>(i * n % 7));
	}
	tree.erase("key3");
	hash.erase(31);
	sink += static_cast<long>(tree.size() + hash.size() + set.size());
}

OWN static void
sequences(unsigned n)
{
	std::vector<double> v(20 + n % 9);
	std::deque<short> d;
	std::list<std::string> l;
	std::vector<std::unique_ptr<Shape>> shapes;

	std::iota(v.begin(), v.end(), n);
	std::sort(v.begin(), v.end(), std::greater<double>());
	std::partial_sum(v.begin(), v.end(), v.begin());
	for (unsigned i = 0; i < 10; i++) {
		d.push_front(static_cast<short>(i));
		l.push_back(std::string(i * 5, 'x'));
		if (i % 2 == 0)
			shapes.emplace_back(new Square(i));
		else
			shapes.emplace_back(new Circle(i));
	}
	l.sort();
	l.unique();
	std::stable_sort(d.begin(), d.end());
	for (const auto &s : shapes)
		sink += static_cast<long>(s->area());
}

OWN static int
thrower(int depth)
{
	const std::string held(static_cast<size_t>(depth) * 8, 'h');

	if (depth == 0)
		throw std::out_of_range("deep enough");
	return thrower(depth - 1) + static_cast<int>(held.size());
}

OWN static void
streams(unsigned n)
{
	std::ostringstream out;
	std::istringstream in("12 3.5 word");
	std::string word;
	double d;
	int i;

	out << "n " << n << ' ' << std::hex << n * 3.25 << true;
	in >> i >> d >> word;
	word += out.str().substr(1, 4);
	word.insert(2, "abc").replace(0, 1, "long enough for the heap");
	sink += static_cast<long>(word.find("heap")) + i;
	try {
		sink += thrower(4);
	} catch (const std::exception &e) {
		sink += e.what()[0];
	}
}

int
main()
{
	std::raise(SIGSTOP);
	for (unsigned n = 1;; n++) {
		maps(n);
		sequences(n);
		streams(n);
	}
}
