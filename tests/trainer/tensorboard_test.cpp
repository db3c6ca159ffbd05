#include "trainer/tensorboard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/file.h"

namespace octavo {
namespace {

TEST(Crc32c, GivesTheKnownAnswers) {
  EXPECT_EQ(0u, crc32c(""));
  EXPECT_EQ(0xe3069283u, crc32c("123456789"));            // the check value of CRC catalogues
  EXPECT_EQ(0x8a9136aau, crc32c(std::string(32, '\0')));  // RFC 3720, B.4
  EXPECT_EQ(0x62a8ab43u, crc32c(std::string(32, '\xff')));
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) {
    rising += static_cast<char>(i);
    falling += static_cast<char>(31 - i);
  }
  EXPECT_EQ(0x46dd794eu, crc32c(rising));
  EXPECT_EQ(0x113fdb5cu, crc32c(falling));
}

TEST(TensorBoard, WritesThePythonFileAgainToTheByte) {
  constexpr double time = 1764447000.25;
  using Scalars = std::vector<std::pair<std::string, float>>;
  // Python's NaN has its sign bit clear, as this one.
  const float nan = std::nanf("");
  const std::string file =
      first_event(time) + restart_event(time, 1) +
      scalar_event(time, 1, Scalars{{"train/loss", 3.25f}, {"train/rate", 1e-7f}}) +
      scalar_event(time + 1, 5'000'000'000, Scalars{{std::string(200, 'x'), nan}, {"ä", 0.0f}});
  EXPECT_EQ(read_file(OCTAVO_SOURCE_DIR "/tests/golden/scalars.tfevents"), file);
}

TEST(TensorBoard, FramesNothingToo) {
  const std::string frame = record_frame("");
  EXPECT_EQ(16u, frame.size());
  EXPECT_EQ(std::string(8, '\0'), frame.substr(0, 8));
}

}  // namespace
}  // namespace octavo
