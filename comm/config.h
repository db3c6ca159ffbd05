#pragma once

#include <cstdint>

namespace octavo {

/// How ranks talk to each other.
struct CommConfig {
  double timeout_seconds = 600.0;
  double bucket_megabytes = 4.0;

  /// Gradient bytes reduced at a time.
  std::int64_t bucket_bytes() const { return static_cast<std::int64_t>(bucket_megabytes * 1e6); }

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("timeout_seconds", timeout_seconds,
              "a rank that waits longer than this for its peers ends the run", v.closed(1, 86400));
    v.setting("bucket_megabytes", bucket_megabytes,
              "gradients (10^6 bytes) summed over ranks at a time while backward goes on",
              v.closed(0.001, 4096));
  }
};

}  // namespace octavo
