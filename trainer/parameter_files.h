#pragma once

#include <set>
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
/// @param left_out  indexes of parameters whose elements stay as they are.
/// @throws UserError  the file and the table differ: names every parameter that is missing, unknown
///                    or of another shape (the first ten of each).
void load_parameters(const ParameterTable& table, const SafetensorsFile& file, const Tensor& flat,
                     std::string_view prefix = "", const std::set<int>& left_out = {});

/// A matrix of f32 [rows, columns] where it lies in the file: not to be written, and valid as long
/// as the file is open.
/// @return absent if it must be copied to be read: it is there in another type or shape, at an odd
///         address, its parts are not side by side, or the model pads its rows.
Tensor matrix_in_place(const ParameterTable& table, const SafetensorsFile& file,
                       ParameterSpan span);

}  // namespace octavo
