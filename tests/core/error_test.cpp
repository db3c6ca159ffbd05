#include "core/error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

namespace octavo {
namespace {

TEST(EndingOf, TellsWhoseFaultItWas) {
  EXPECT_EQ(2, ending_of(UserError("mend it")).exit_code);
  EXPECT_EQ("mend it", ending_of(UserError("mend it")).message);
  EXPECT_EQ(3, ending_of(DeviceError("a peer left")).exit_code);
  EXPECT_EQ(3, ending_of(std::bad_alloc()).exit_code);
  EXPECT_TRUE(ending_of(std::bad_alloc()).message.starts_with("out of memory"));
  const std::filesystem::filesystem_error refused(
      "status", "runs/a", std::make_error_code(std::errc::permission_denied));
  EXPECT_EQ(2, ending_of(refused).exit_code);
  EXPECT_EQ("cannot use runs/a: Permission denied", ending_of(refused).message);
  EXPECT_EQ(4, ending_of(std::runtime_error("from a library")).exit_code);
  EXPECT_TRUE(ending_of(InternalError("wrong shape"))
                  .message.starts_with("wrong shape. This is a fault of octavo"));
}

TEST(JsonReason, IsForUsers) {
  const auto reason = [](const char* text, const char* key) {
    try {
      nlohmann::json::parse(text).at(key);
    } catch (const nlohmann::json::exception& e) {
      return json_reason(e);
    }
    return std::string("nothing thrown");
  };
  EXPECT_EQ("it is not JSON at line 2, column 5", reason("{\n\"a\":]", "a"));
  EXPECT_EQ("key 'b' not found", reason("{\"a\": 1}", "b"));
  EXPECT_EQ("something else", json_reason(std::runtime_error("something else")));
}

}  // namespace
}  // namespace octavo
