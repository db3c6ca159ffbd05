#include <memory>
#include <string>
#include <vector>

#include "configs/experiment.h"
#include "data/prepare.h"
#include "launch/commands.h"
#include "launch/rank_threads.h"

namespace octavo {

Command prepare_command() {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
    int threads = 0;
  };
  auto options = std::make_shared<Options>();
  Command c;
  c.name = "prepare";
  c.summary = "text to subword model, vocabulary and binary corpus; skips what is up to date";
  c.usage = "CONFIG [options]";
  c.options.add_options()  //
      ("config", po::value(&options->config)->required()->value_name("CONFIG"),
       "experiment, e.g. configs/quickstart-en-de.yaml")  //
      ("set", po::value(&options->overrides)->composing()->value_name("KEY=VALUE"),
       "overrides a setting; may be repeated")  //
      ("threads", po::value(&options->threads)->default_value(0)->value_name("N"),
       "0: OMP_NUM_THREADS, else as many as there are processors");
  c.positional.add("config", 1);
  c.run = [options](const po::variables_map&) {
    const Experiment experiment = read_experiment(options->config, options->overrides);
    prepare(experiment.data, threads_per_rank(options->threads, 1));
    return 0;
  };
  return c;
}

}  // namespace octavo
