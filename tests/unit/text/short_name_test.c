/* short_name: a long name loses what its templates were given, and no more. */
#include "test.h"

#include <stdlib.h>

#include "text/short_name.h"

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, " \
		"std::allocator<char> >"

TEST(omits_arguments)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{"bump", "bump"},
		{"std::map<int, long>::operator[]",
		 "std::map<int, long>::operator[]"},
		{"std::map<" STRING ", long>::operator[]",
		 "std::map<...>::operator[]"},
		{STRING "::push_back",
		 "std::__cxx11::basic_string<...>::push_back"},
		{"bool std::operator< <char, std::char_traits<char> >",
		 "bool std::operator< <char, std::char_traits<...> >"},
		{"bool std::operator==<char, std::char_traits<char> >",
		 "bool std::operator==<...>"},
		{"deep::operator<<(int) const::wide<(5 > 3), "
		 "std::vector<int> >",
		 "deep::operator<<(int) const::wide<...>"},
		{"holder<&thing::operator->, std::less<int> >::take_it_all",
		 "holder<...>::take_it_all"},
		{"call<void (*)(int), auto (*)() -> int, some::other_type>",
		 "call<...>"},
		{"<alloc::vec::Vec<program::Item> as core::ops::Drop>::drop",
		 "<alloc::vec::Vec<...> as core::ops::Drop>::drop"},
		{"never_closed_and_long_enough_to_be_cut<std::vector<int>",
		 "never_closed_and_long_enough_to_be_cut<std::vector<...>"},
		{"keeps_a_pair_of_brackets_that_is_short<T>::and_goes_on",
		 "keeps_a_pair_of_brackets_that_is_short<T>::and_goes_on"},
		{">>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>",
		 ">>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *name = short_name(cases[i].name);

		assert_string_equal(name, cases[i].shown);
		free(name);
	}
}

RUN_TESTS()
