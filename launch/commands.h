#pragma once

#include "launch/command.h"

/// Every subcommand, each made in its own file.
namespace octavo {

Command evaluate_command();
Command score_command();
Command settings_command();
Command translate_command();

}  // namespace octavo
