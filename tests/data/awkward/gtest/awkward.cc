#include <gtest/gtest.h>
#include <iostream>
#include <cstdlib>
TEST(Plain, Passes) { EXPECT_TRUE(true); }
TEST(Plain, Fails) { EXPECT_EQ(1, 2) << "[       OK ] Ghost.In (1 ms)"; }
TEST(Plain, PrintsWithoutNewline) { std::cout << "no newline"; }
TEST(Plain, PrintsAPass) { std::cout << "[ RUN      ] Ghost.Printed\n[       OK ] Ghost.Printed (0 ms)\n"; }
TEST(Plain, PrintsItsPassAndFails) { std::cout << "[       OK ] Ghost.Other (0 ms)\n"; FAIL(); }
TEST(Plain, Skipped) { GTEST_SKIP() << "later"; }
TEST(Plain, DISABLED_Never) { FAIL(); }
class Param : public testing::TestWithParam<const char*> {};
TEST_P(Param, Value) { EXPECT_STRNE(GetParam(), "b (2 ms)"); }
INSTANTIATE_TEST_SUITE_P(All, Param, testing::Values("a b", "b (2 ms)", "c"));
template <class T> class Typed : public testing::Test {};
using Types = testing::Types<int, unsigned long>;
TYPED_TEST_SUITE(Typed, Types);
TYPED_TEST(Typed, IsSmall) { EXPECT_LE(sizeof(TypeParam), 4u); }
TEST(DeathTest, Dies) { EXPECT_DEATH(std::abort(), ""); }
TEST(DeathTest, DoesNotDie) { EXPECT_DEATH(std::cerr << "alive", ""); }
class Torn : public testing::Test { protected: void TearDown() override { FAIL() << "torn"; } };
TEST_F(Torn, BodyPasses) {}
TEST(ZCrash, Crashes) { if (getenv("CRASH")) std::abort(); }
TEST(ZCrash, After) {}
