#include "core/error.h"

#include <gtest/gtest.h>

#include <new>

namespace octavo {
namespace {

TEST(EndingOf, TellsWhoseFaultItWas) {
  EXPECT_EQ(2, ending_of(UserError("mend it")).exit_code);
  EXPECT_EQ("mend it", ending_of(UserError("mend it")).message);
  EXPECT_EQ(3, ending_of(DeviceError("a peer left")).exit_code);
  EXPECT_EQ(3, ending_of(std::bad_alloc()).exit_code);
  EXPECT_TRUE(ending_of(std::bad_alloc()).message.starts_with("out of memory"));
  EXPECT_EQ(4, ending_of(std::runtime_error("from a library")).exit_code);
  EXPECT_TRUE(ending_of(InternalError("wrong shape"))
                  .message.starts_with("wrong shape. This is a fault of octavo"));
}

}  // namespace
}  // namespace octavo
