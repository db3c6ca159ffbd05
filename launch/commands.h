#pragma once

#include <functional>
#include <memory>

#include "comm/group.h"
#include "launch/command.h"

/// Every subcommand, each made in its own file.
namespace octavo {

Command average_command();
Command doctor_command();
Command evaluate_command();
Command inspect_command();
Command plan_command();
Command prepare_command();
Command score_command();
Command settings_command();
/// @param join  how this process finds its peers.
Command train_command(std::function<std::unique_ptr<Group>()> join = join_ranks);
Command translate_command();
Command verify_command();

}  // namespace octavo
