/*
 * gtest_suite: the same with GoogleTest, where a listener looks after each
 * test.
 *
 *	gtest_suite.cc:27: Failure
 *	Failed
 *	stray write
 *	#1   stray write  config (4 of 8 bytes, at 0x5578fa1937d4)
 *	     gtest_suite[7903/7903] cpu 0  +0.000456s
 *	     accepts+0xa  mov %eax, 0x5da4a(%rip)   gtest_suite.cc:27
 *	     0  accepts                                        gtest_suite.cc:27
 *	     1  Config_AcceptingChangesNothing_Test::TestBody  gtest_suite.cc:35
 *	     ...
 *	[  FAILED  ] Config.AcceptingChangesNothing (56 ms)
 */
#include <gtest/gtest.h>
#include <watchpoint.h>

static struct config {
	int port;
	int limit;
} config = {8080, 3};

static bool
accepts(int clients)
{
	if ((config.limit = clients))	// meant: ==
		return false;
	return true;
}

TEST(Config, AcceptingChangesNothing)
{
	WP_FREEZE(config)
		EXPECT_FALSE(accepts(3));
}

TEST(Config, AcceptingMayFail)
{
	wp::freeze frozen(config.port, "config.port");

	EXPECT_FALSE(accepts(2));
}

class NoStrayWrites : public testing::EmptyTestEventListener {
	void OnTestStart(const testing::TestInfo &) override
	{
		wp_stray_reset();
	}

	void OnTestEnd(const testing::TestInfo &) override
	{
		if (wp_stray_count() != 0) {
			wp_place place;

			wp_report_place(wp_stray_text(), &place);
			ADD_FAILURE_AT(place.file, place.line)
			    << "stray write\n" << wp_stray_text();
		}
		EXPECT_EQ(wp_stray_missed(), 0u) << wp_stray_missed_text();
	}
};

int
main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	testing::UnitTest::GetInstance()->listeners().Append(new NoStrayWrites);
	return RUN_ALL_TESTS();
}
