#pragma once

#include "configs/experiment.h"
#include "trainer/recipe.h"

namespace octavo {

/// How a training is spread: what of a recipe may differ elsewhere.
struct RankCounts {
  int ranks = 1, threads = 1;
};

/// What this program, on this machine, would make a run from: all but the data.
Recipe recipe_now(const Experiment& experiment, const RankCounts& counts);

}  // namespace octavo
