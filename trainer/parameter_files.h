#pragma once

#include <string_view>
#include <vector>

#include "core/safetensors.h"
#include "core/tensor.h"
#include "model/parameters.h"

namespace octavo {

/// The parameters in a flat buffer as tensors for a file: by canonical name, without padded rows.
/// They are views: `flat` must stay as it is until they are written.
/// @param flat    [flat_size], f32 or f64, in host memory: master weights, a moment, an average.
/// @param prefix  put before every name, so that several buffers fit into one file.
std::vector<NamedTensor> stored_tensors(const ParameterTable& table, const Tensor& flat,
                                        std::string_view prefix = "");

/// Fills a flat buffer from a file; padded rows and gaps become zero. F32, F64 and BF16 are
/// converted to the buffer's type.
/// @param flat    [flat_size], f32 or f64, in host memory. Untouched if the file does not fit.
/// @param prefix  tensors whose names begin otherwise are another buffer's.
/// @throws UserError  the file and the table differ: names every parameter that is missing, unknown
///                    or of another shape (the first ten of each).
void load_parameters(const ParameterTable& table, const SafetensorsFile& file, const Tensor& flat,
                     std::string_view prefix = "");

}  // namespace octavo
