#include "trainer/parameter_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;

/// An embedding with padded rows, a packed matrix, vectors of odd sizes.
ParameterTable sample_table() {
  ParameterTable table;
  table.begin_group();
  table.add_matrix("embedding", 5, 3, Init::embedding, 64);
  table.begin_group();
  table.add_packed_matrix({"q", "k"}, 2, 3, Init::xavier);
  table.add_vector("bias", 7, Init::zeros);
  table.seal();
  return table;
}

template <typename T>
class Flat {
 public:
  explicit Flat(const ParameterTable& table)
      : values_(static_cast<std::size_t>(table.flat_size()), T(-1)) {}
  Tensor tensor() {
    return {values_.data(), {static_cast<std::int64_t>(values_.size())}, kDTypeOf<T>};
  }
  std::vector<T>& values() { return values_; }

 private:
  std::vector<T> values_;
};

template <typename T>
Flat<T> counted(const ParameterTable& table) {
  Flat<T> flat(table);
  for (std::size_t i = 0; i < flat.values().size(); ++i)
    flat.values()[i] = static_cast<T>(i) + T(1) / T(3);
  return flat;
}

void save(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  AtomicFile file(path);
  write_safetensors(file, tensors, {});
  file.commit();
}

/// What load_parameters() should give: the parameters of `from`, zero everywhere else.
template <typename To, typename From>
std::vector<To> expected(const ParameterTable& table, Flat<From>& from) {
  std::vector<To> out(from.values().size(), To(0));
  for (const Parameter& p : table.parameters())
    for (std::int64_t i = p.offset; i < p.offset + p.shape[0] * p.columns(); ++i)
      out[static_cast<std::size_t>(i)] =
          static_cast<To>(from.values()[static_cast<std::size_t>(i)]);
  return out;
}

template <typename Stored, typename Loaded>
void round_trip() {
  const TempFolder folder;
  const ParameterTable table = sample_table();
  Flat<Stored> stored = counted<Stored>(table);
  save(folder / "x", stored_tensors(table, stored.tensor()));
  Flat<Loaded> loaded(table);
  load_parameters(table, SafetensorsFile(folder / "x"), loaded.tensor());
  EXPECT_EQ((expected<Loaded>(table, stored)), loaded.values());
}

TEST(ParameterFiles, ComeBackWithZeroedPadding) {
  round_trip<float, float>();
  round_trip<double, double>();
}

TEST(ParameterFiles, AreConvertedToTheModelsType) {
  round_trip<float, double>();
  round_trip<double, float>();
  const TempFolder folder;
  ParameterTable table;
  table.begin_group();
  table.add_vector("w", 3, Init::zeros);
  table.seal();
  const std::array<bfloat16, 3> halves{bfloat16(1.5f), bfloat16(-2.0f), bfloat16(0.0f)};
  save(folder / "x", {{"w", DType::bf16, {3}, std::as_bytes(std::span(halves))}});
  Flat<float> loaded(table);
  load_parameters(table, SafetensorsFile(folder / "x"), loaded.tensor());
  EXPECT_EQ(1.5f, loaded.values()[0]);
  EXPECT_EQ(-2.0f, loaded.values()[1]);
}

TEST(ParameterFiles, StoreShapesWithoutPaddedRows) {
  const ParameterTable table = sample_table();
  Flat<float> flat = counted<float>(table);
  const std::vector<NamedTensor> tensors = stored_tensors(table, flat.tensor(), "first.");
  ASSERT_EQ(4u, tensors.size());
  EXPECT_EQ("first.embedding", tensors[0].name);
  EXPECT_THAT(tensors[0].shape, testing::ElementsAre(5, 3));
  EXPECT_EQ(5u * 3 * 4, tensors[0].bytes.size());
  EXPECT_EQ("first.bias", tensors[3].name);
  EXPECT_THAT(tensors[3].shape, testing::ElementsAre(7));
}

TEST(ParameterFiles, TwoBuffersShareAFile) {
  const TempFolder folder;
  const ParameterTable table = sample_table();
  Flat<float> first = counted<float>(table), second(table), loaded(table);
  std::vector<NamedTensor> both = stored_tensors(table, first.tensor(), "first.");
  for (NamedTensor& t : stored_tensors(table, second.tensor(), "second.")) both.push_back(t);
  save(folder / "x", both);
  load_parameters(table, SafetensorsFile(folder / "x"), loaded.tensor(), "second.");
  EXPECT_EQ((expected<float>(table, second)), loaded.values());
  load_parameters(table, SafetensorsFile(folder / "x"), loaded.tensor(), "first.");
  EXPECT_EQ((expected<float>(table, first)), loaded.values());
}

TEST(ParameterFiles, LeaveOutWhatIsReadElsewhere) {
  const TempFolder folder;
  const ParameterTable table = sample_table();
  Flat<float> stored = counted<float>(table), loaded(table);
  save(folder / "x", stored_tensors(table, stored.tensor()));
  load_parameters(table, SafetensorsFile(folder / "x"), loaded.tensor(), "", {1});
  std::vector<float> wanted = expected<float>(table, stored);
  const Parameter& left_out = table.parameters()[1];
  std::fill_n(wanted.begin() + left_out.offset, left_out.padded_size(), -1.0f);
  EXPECT_EQ(wanted, loaded.values());
}

TEST(ParameterFiles, MatricesCanBeReadWhereTheyLie) {
  const TempFolder folder;
  ParameterTable table;
  table.begin_group();
  const ParameterSpan padded = table.add_matrix("padded", 5, 3, Init::xavier, 8);
  const ParameterSpan both = table.add_packed_matrix({"q", "k"}, 2, 4, Init::xavier);
  table.seal();
  Flat<float> stored = counted<float>(table);
  std::vector<NamedTensor> tensors = stored_tensors(table, stored.tensor());
  save(folder / "x", tensors);
  const SafetensorsFile file(folder / "x");
  const Tensor found = matrix_in_place(table, file, both);
  ASSERT_TRUE(found.present());
  EXPECT_EQ(found.dim(0), 4);
  EXPECT_EQ(found.dim(1), 4);
  const Parameter& q = table.parameters()[static_cast<std::size_t>(both.first)];
  for (std::int64_t i = 0; i < 16; ++i)
    EXPECT_EQ(found.data<float>()[i], stored.values()[static_cast<std::size_t>(q.offset + i)]);
  EXPECT_FALSE(matrix_in_place(table, file, padded).present());

  std::swap(tensors[1], tensors[2]);  // k before q
  save(folder / "y", tensors);
  EXPECT_FALSE(matrix_in_place(table, SafetensorsFile(folder / "y"), both).present());
  Flat<double> doubles = counted<double>(table);
  save(folder / "z", stored_tensors(table, doubles.tensor()));
  EXPECT_FALSE(matrix_in_place(table, SafetensorsFile(folder / "z"), both).present());
}

TEST(ParameterFiles, NameEveryDifferenceAndTouchNothing) {
  const TempFolder folder;
  const ParameterTable table = sample_table();
  Flat<float> flat = counted<float>(table);
  std::vector<NamedTensor> tensors = stored_tensors(table, flat.tensor());
  tensors[0].shape = {3, 5};
  tensors[1].name = "other";
  tensors[3].type = DType::i32;
  save(folder / "x", tensors);
  Flat<float> loaded(table);
  EXPECT_THAT(message_of<UserError>(
                  [&] { load_parameters(table, SafetensorsFile(folder / "x"), loaded.tensor()); }),
              testing::AllOf(HasSubstr("Missing in the file: q."),
                             HasSubstr("Unknown to the model: other."),
                             HasSubstr("embedding is [3, 5] in the file and [5, 3] in the model"),
                             HasSubstr("bias holds i32")));
  EXPECT_THAT(loaded.values(), testing::Each(-1.0f));
}

TEST(ParameterFiles, DoNotListThousandsOfNames) {
  const TempFolder folder;
  ParameterTable table;
  table.begin_group();
  for (int i = 0; i < 1000; ++i) table.add_vector("p" + std::to_string(i), 1, Init::zeros);
  table.seal();
  save(folder / "x", {});
  Flat<float> loaded(table);
  EXPECT_THAT(message_of<UserError>(
                  [&] { load_parameters(table, SafetensorsFile(folder / "x"), loaded.tensor()); }),
              HasSubstr("p9 and 990 more."));
}

TEST(ParameterFiles, CallersBringAFlatBufferOfTheTable) {
  const ParameterTable table = sample_table();
  std::vector<float> small(3);
  EXPECT_NE("nothing thrown", message_of<InternalError>([&] {
              stored_tensors(table, Tensor(small.data(), {3}, DType::f32));
            }));
}

}  // namespace
}  // namespace octavo
