/* sig_data_test: what a signal of a hit says of its watch, also where half of
   it is all that arrives. */
#include "test.h"

#include "handler/sig_data.h"

/* What a 32-bit program makes of what is sent to it. */
static uint64_t
sent(uint64_t data, uint64_t addr)
{
	return wp_sig_wide(wp_sig_narrow(data), wp_sig_narrow_addr(data, addr));
}

TEST(a_32_bit_program_knows_the_watch)
{
	static const unsigned slots[] = {
		0, 3, WP_SIG_SLOTS | 1, WP_SIG_SLOTS | 0xf,
	};

	for (size_t i = 0; i < COUNT(slots); i++)
		for (unsigned index = 0; index < 256; index++) {
			const uint64_t data = wp_sig_data(0xab000000u | index,
			    slots[i], index);
			const uint64_t got = sent(data, 5);

			assert_true(wp_sig_is_of(got, 0xab));
			assert_int_equal(got & 0xffffff, data & 0xffffff);
			assert_int_equal(wp_sig_slots(got >> 16 & 0xff),
			    wp_sig_slots(slots[i]));
			assert_int_equal(got >> 24 & WP_SIG_NARROW_USES,
			    index & WP_SIG_NARROW_USES);
		}
}

TEST(a_32_bit_program_knows_several_watches)
{
	static const uint8_t watch[4] = {1, 255, 0, 17};
	const uint64_t data = wp_sig_many(0xab000123u, watch);
	const uint64_t got = sent(data, wp_sig_times(1, 3, 0));

	assert_true(wp_sig_is_of(got, 0xab));
	assert_int_equal(got >> 16 & 0xff, WP_SIG_MANY);
	for (unsigned i = 0; i < COUNT(watch); i++)
		assert_int_equal(wp_sig_many_get(got, i), watch[i]);
}

TEST(a_32_bit_program_knows_how_often)
{
	const uint64_t data = wp_sig_data(1, WP_SIG_SLOTS | 1, 2);

	assert_int_equal(wp_sig_narrow_addr(data, 7), 7);
	assert_int_equal(wp_sig_narrow_addr(data, UINT64_MAX), UINT32_MAX);
	/* late or not, it is the same watch */
	assert_int_equal(wp_sig_wide(wp_sig_narrow(data) | WP_SIG_NARROW_LATE,
	    7), wp_sig_wide(wp_sig_narrow(data), 7));
}

TEST(signals_sent_by_others_are_not_hits)
{
	static const uint32_t others[] = {0, 1, 5, 0x0fffffff, 0x60000000};

	for (size_t i = 0; i < COUNT(others); i++)
		assert_int_equal(wp_sig_wide(others[i], 0), 0);
}

RUN_TESTS()
