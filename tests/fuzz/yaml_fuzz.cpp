// Settings: read, written as resolved.yaml and read again.
#include "data/config.h"
#include "tests/fuzz/fuzz.h"

using namespace octavo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::may_refuse([&] {
    const std::string text(fuzz::text_of(data, size));
    // The last line, if it is long enough, is an override.
    const std::size_t last = text.rfind('\n');
    ConfigNode tree = parse_config(text, "input");
    if (last != std::string::npos)
      fuzz::may_refuse([&] { set_value(tree, text.substr(last + 1)); });
    DataConfig config;
    read_settings(config, tree);
    DataConfig again;
    read_settings(again, parse_config(resolved_yaml(config), "resolved"));
    fuzz::require(flatten(config) == flatten(again), "resolved.yaml gives equal settings");
  });
  return 0;
}
