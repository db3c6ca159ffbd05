#include "model/config.h"

#include <fmt/format.h>

#include "core/error.h"

namespace octavo {

void ModelConfig::check() const {
  if (!head_width && width % heads != 0) {
    throw UserError(fmt::format(
        "model.width {} can't be divided among model.heads {}: choose a multiple, or set "
        "model.head_width",
        width, heads));
  }
  if (positions == PositionKind::sinusoidal && width % 2 != 0) {
    throw UserError(fmt::format(
        "model.width is {}: sinusoidal positions come in pairs of sine and cosine, so it must be "
        "even",
        width));
  }
}

}  // namespace octavo
