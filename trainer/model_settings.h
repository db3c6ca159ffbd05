#pragma once

#include <string>

#include "core/config_tree.h"
#include "trainer/checkpoint.h"

namespace octavo {

/// The settings that a checkpoint was made with. @throws UserError  it has none, or they are
/// damaged.
ConfigNode settings_of(const Checkpoint& checkpoint);

/// The first setting of the model at which two experiments differ, "model.heads"; empty if none
/// does. Dropout and the longest sentence are left out: weights mean the same with any, and learned
/// positions have that length as their shape.
std::string different_model_setting(const ConfigNode& a, const ConfigNode& b);

}  // namespace octavo
