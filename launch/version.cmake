# Writes OUTPUT, a header with the git revision. Runs at every build of the program, so that
# the revision is that of the sources; the file is only touched when its contents change.
execute_process(COMMAND git describe --always --dirty --abbrev=10 --exclude * WORKING_DIRECTORY ${SOURCE_DIR}
                OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT revision)
  set(revision "unknown revision")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#pragma once

#include <string_view>

namespace octavo {

/// The git revision, "-dirty" if files differ from it.
inline constexpr std::string_view kRevision = "@revision@";

}  // namespace octavo
]] @ONLY)
