#include "tests/testkit/gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/testkit/tensors.h"

namespace octavo::testkit {
namespace {

constexpr std::int64_t kElementsChecked = 300;

// Four-point rule: its error is of order step^4, so the step can be large against rounding.
double central_difference(const std::function<double()>& loss, double& element) {
  const double x = element, step = 1e-3 * std::max(1.0, std::abs(x));
  const auto at = [&](double offset) {
    element = x + offset;
    return loss();
  };
  const double near = at(step) - at(-step), far = at(2 * step) - at(-2 * step);
  element = x;
  return (8 * near - far) / (12 * step);
}

std::string check_one(const std::function<double()>& loss, const GradientCheck& check,
                      double tolerance) {
  const Tensor &value = check.value, &gradient = check.gradient;
  const std::int64_t n = value.elements();
  if (n != gradient.elements()) {
    return fmt::format("d loss / d {}: {} has gradient {}", check.name, value.description(),
                       gradient.description());
  }
  if (n == 0) return "";
  const std::int64_t width = n / value.dim(0);
  const std::int64_t stride = std::max<std::int64_t>(1, n / kElementsChecked);
  double worst = 0;
  std::string message;
  for (std::int64_t i = 0; i < n; i += stride) {
    const std::int64_t row = i / width, column = i % width;
    double& element = value.data<double>()[row * value.row_stride() + column];
    const double backward = gradient.data<double>()[row * gradient.row_stride() + column];
    const double difference = central_difference(loss, element);
    const double error =
        std::abs(backward - difference) / std::max({1.0, std::abs(backward), std::abs(difference)});
    if (error <= std::max(tolerance, worst)) continue;  // false for a NaN
    worst = error;
    message = fmt::format(
        "d loss / d {}[{}]: backward says {:g}, central difference says {:g} (relative error {:g}, "
        "allowed {:g})",
        check.name, i, backward, difference, error, tolerance);
    if (std::isnan(error)) break;
  }
  return message;
}

}  // namespace

std::string grad_mismatch(const std::function<double()>& loss,
                          const std::vector<GradientCheck>& checks, double tolerance) {
  std::string all;
  for (const GradientCheck& check : checks) {
    const std::string one = check_one(loss, check, tolerance);
    if (!one.empty()) all += (all.empty() ? "" : "\n") + one;
  }
  return all;
}

double weighted_sum(const Tensor& weights, const Tensor& y) {
  const std::vector<double> w = values_of(weights), v = values_of(y);
  expect(w.size() == v.size(), "weighted_sum: another number of elements");
  double sum = 0;
  for (std::size_t i = 0; i < w.size(); ++i) sum += w[i] * v[i];
  return sum;
}

}  // namespace octavo::testkit
