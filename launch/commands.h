#pragma once

#include "launch/command.h"

/// Every subcommand, each made in its own file.
namespace octavo {

Command settings_command();

}  // namespace octavo
