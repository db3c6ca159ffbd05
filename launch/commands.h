#pragma once

#include "launch/command.h"

/// Every subcommand, each made in its own file.
namespace octavo {

Command average_command();
Command evaluate_command();
Command inspect_command();
Command plan_command();
Command prepare_command();
Command score_command();
Command settings_command();
Command train_command();
Command translate_command();

}  // namespace octavo
