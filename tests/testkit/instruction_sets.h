#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "core/dtype.h"
#include "hwy/highway.h"

namespace octavo::testkit {

/// Makes kernels use one instruction set until the end of the scope.
class UseInstructionSet {
 public:
  explicit UseInstructionSet(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  UseInstructionSet(const UseInstructionSet&) = delete;
  UseInstructionSet& operator=(const UseInstructionSet&) = delete;
  ~UseInstructionSet() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

/// Those that this build holds kernels for and this machine runs, the best first.
inline std::vector<std::int64_t> instruction_sets() {
  return hwy::SupportedAndGeneratedTargets();
}

/// A test that runs for each instruction set and each of f32, bf16 and f64:
///
///     class NormKernel : public testkit::KernelTest {};
///     TEST_P(NormKernel, AgreesWithReference) { ... type() ... }
///     INSTANTIATE_TEST_SUITE_P(All, NormKernel, testkit::every_kernel(), testkit::kernel_name);
class KernelTest : public ::testing::TestWithParam<std::tuple<std::int64_t, DType>> {
 protected:
  KernelTest() : use_(std::get<0>(GetParam())) {}
  DType type() const { return std::get<1>(GetParam()); }

 private:
  UseInstructionSet use_;
};

inline auto every_kernel() {
  return ::testing::Combine(::testing::ValuesIn(instruction_sets()),
                            ::testing::Values(DType::f32, DType::bf16, DType::f64));
}

/// "AVX2_bf16"
inline std::string kernel_name(const ::testing::TestParamInfo<KernelTest::ParamType>& info) {
  return std::string(hwy::TargetName(std::get<0>(info.param))) + "_" +
         std::string(name_of(std::get<1>(info.param)));
}

}  // namespace octavo::testkit
