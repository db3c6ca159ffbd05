// Damaged, exchanged and missing files of our own, and full disks, through the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "tests/end_to_end/experiment_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testkit::expect_user_error;
using testkit::ExperimentFolder;
using testkit::ProgramResult;
using testkit::run_shell;

constexpr const char* kNewest = "/checkpoints/step_00000004";

class BadFiles : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new ExperimentFolder(10);
    const ProgramResult trained = folder_->train("run", settings(4));
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const ProgramResult longer = folder_->train("whole", settings(6));
    ASSERT_EQ(longer.exit_code, 0) << longer.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::vector<std::string> settings(int updates, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = ExperimentFolder::tiny_model();
    all.push_back("trainer.max_updates=" + std::to_string(updates));
    all.emplace_back("trainer.checkpoints.every_updates=2");
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// A fresh copy of a folder: to be damaged.
  static std::string copy(const std::string& from, const std::string& to) {
    fs::remove_all(folder_->path(to));
    fs::copy(folder_->path(from), folder_->path(to), fs::copy_options::recursive);
    return folder_->path(to);
  }
  static ProgramResult resume(const std::vector<std::string>& more = {}) {
    return folder_->train("damaged", settings(6, more));
  }
  static ProgramResult translate(const std::string& model) {
    return ExperimentFolder::octavo({"translate", model, "--threads", "1"}, "ba du\n");
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static void flip_bit(const fs::path& path, std::size_t byte) {
    std::string bytes = read_file(path);
    bytes[byte] = static_cast<char>(bytes[byte] ^ 0x04);
    write(path, bytes);
  }
  static void make_folder_of(const fs::path& file) {
    fs::remove(file);
    fs::create_directory(file);
  }
  /// The same weights and optimiser state as the run that nothing happened to.
  static void expect_whole(const std::string& run) {
    EXPECT_TRUE(folder_->weights(run, 6) == folder_->weights("whole", 6));
  }
  /// octavo under `ulimit -f`: files may not grow beyond so many bytes.
  static ProgramResult with_small_files(int bytes, const std::vector<std::string>& arguments) {
    return run_shell("ulimit -f " + std::to_string(bytes / 512) + "; \"$@\"", arguments);
  }

  static ExperimentFolder* folder_;
};
ExperimentFolder* BadFiles::folder_ = nullptr;

TEST_F(BadFiles, DamagedCheckpointsAreRefusedByName) {
  for (const char* file :
       {"weights.safetensors", "optimizer.safetensors", "state.json", "settings.yaml"}) {
    const auto damaged = [&] { return fs::path(copy("run", "damaged") + kNewest) / file; };
    const std::vector<std::string> parts{"step_00000004 is damaged", file, "use another one"};
    const fs::path path = damaged();
    flip_bit(path, fs::file_size(path) / 2);
    expect_user_error(resume(), parts);
    fs::resize_file(damaged(), 30);
    expect_user_error(resume(), parts);
    fs::resize_file(damaged(), 0);
    expect_user_error(resume(), parts);
    fs::remove(damaged());
    expect_user_error(resume(), parts);
    make_folder_of(damaged());
    expect_user_error(resume(), parts);
    // What is moved away, as the message says, is not missed.
    fs::remove_all(folder_->path("damaged") + kNewest);
  }
  const ProgramResult again = resume();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  expect_whole("damaged");
}

TEST_F(BadFiles, DamagedManifestsOfCheckpointsAreRefused) {
  const auto manifest = [] { return fs::path(copy("run", "damaged") + kNewest) / "manifest.json"; };
  const std::string text = read_file(manifest());
  const std::size_t hash = text.find("xxh3") + 8;
  flip_bit(manifest(), hash);
  expect_user_error(resume(), {"step_00000004 is damaged"});
  fs::resize_file(manifest(), text.size() / 2);
  expect_user_error(resume(), {"step_00000004 is damaged: manifest.json: it is not JSON at line"});
  fs::resize_file(manifest(), 0);
  expect_user_error(resume(), {"step_00000004 is damaged: manifest.json"});

  // Without one the folder is no checkpoint: the one before is taken, and that is said.
  fs::remove(manifest());
  const ProgramResult passed_over = resume();
  EXPECT_EQ(passed_over.exit_code, 0) << passed_over.err;
  EXPECT_THAT(passed_over.err, HasSubstr("step_00000004 has no manifest.json"));
  EXPECT_THAT(passed_over.err,
              HasSubstr("goes on from " + folder_->path("damaged") + "/checkpoints/step_00000002"));
  expect_whole("damaged");
}

TEST_F(BadFiles, ModelsThatAreNotTheCheckpointsOwnDoNotTranslate) {
  const std::string checkpoint = copy("run", "damaged") + kNewest;
  flip_bit(checkpoint + "/subwords.model", 1000);
  expect_user_error(translate(checkpoint), {"is damaged", "subwords.model has other content"});
  const ProgramResult other = folder_->prepare(
      {"data.prepared=" + folder_->path("smaller"), "data.subwords.vocabulary_size=390"});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  fs::copy_file(folder_->path("smaller/subwords.model"), checkpoint + "/subwords.model",
                fs::copy_options::overwrite_existing);
  expect_user_error(translate(checkpoint), {"is damaged", "subwords.model"});
  expect_user_error(
      ExperimentFolder::octavo({"average", "--output", folder_->path("average"), checkpoint}),
      {"is damaged", "subwords.model"});
  EXPECT_FALSE(fs::exists(folder_->path("average")));

  copy("run", "damaged");
  flip_bit(checkpoint + "/weights.safetensors", 9000);
  expect_user_error(translate(checkpoint), {"is damaged", "weights.safetensors"});
  write(folder_->path("damaged/checkpoints/best.json"), "no JSON");
  expect_user_error(translate(folder_->path("damaged")), {"best.json is damaged", "Remove it"});
}

TEST_F(BadFiles, DamagedPreparedFilesAreRefusedAndMadeAgain) {
  const auto in_damaged = [] { return "data.prepared=" + folder_->path("damaged_data"); };
  for (const char* name :
       {"train.0.corpus", "dev.corpus", "subwords.model", "subwords.vocab", "prepared.json"}) {
    const auto file = [&] { return fs::path(copy("prepared", "damaged_data")) / name; };
    const fs::path path = file();
    const std::size_t size = fs::file_size(path);
    const std::string good = read_file(path);
    const bool is_manifest = std::string(name) == "prepared.json";
    const auto expect_mended = [&] {
      copy("run", "damaged");
      expect_user_error(resume({in_damaged()}), {name, "octavo prepare"});
      if (is_manifest) fs::remove_all(path.parent_path());  // as the message says
      const ProgramResult mended = folder_->prepare({in_damaged()});
      EXPECT_EQ(mended.exit_code, 0) << mended.err;
      EXPECT_TRUE(read_file(path) == good) << name;
    };
    if (!is_manifest) {
      for (const std::size_t byte : {size / 40, size / 2, size - 20}) {
        flip_bit(file(), byte);
        expect_mended();
      }
    }
    fs::resize_file(file(), size / 2);
    expect_mended();
    fs::resize_file(file(), 0);
    expect_mended();
    if (is_manifest) continue;
    fs::remove(file());
    expect_mended();
    make_folder_of(file());
    expect_user_error(resume({in_damaged()}), {name});
    expect_user_error(folder_->prepare({in_damaged()}), {name});
  }
}

TEST_F(BadFiles, OtherDataOrAnotherVocabularyIsRefused) {
  // Half of the same text: another model of the same size.
  const ProgramResult cut = run_shell(
      "cd \"$1\" && tail -n 1500 train.source > half.source && tail -n 1500 train.target > "
      "half.target",
      {folder_->path(".")});
  ASSERT_EQ(cut.exit_code, 0) << cut.err;
  const std::vector<std::string> other{"data.prepared=" + folder_->path("other"),
                                       "data.train=[{source: " + folder_->path("half.source") +
                                           ", target: " + folder_->path("half.target") + "}]"};
  const ProgramResult prepared = folder_->prepare(other);
  ASSERT_EQ(prepared.exit_code, 0) << prepared.err;

  copy("run", "damaged");
  expect_user_error(resume(other), {"step_00000004", "data.train[0] has hash", "vocabulary.source",
                                    "Bring back what it was made with"});
  std::vector<std::string> tuned = settings(1, other);
  tuned.push_back("trainer.init_from=" + folder_->path("run"));
  expect_user_error(folder_->train("tuned", tuned),
                    {"trainer.init_from", "another vocabulary", "data.subwords.model"});

  // Files of both in one folder.
  const std::string mixed = copy("prepared", "mixed");
  for (const char* name : {"train.0.corpus", "subwords.model"}) {
    copy("prepared", "mixed");
    fs::copy_file(folder_->path("other/") + name, mixed + "/" + name,
                  fs::copy_options::overwrite_existing);
    expect_user_error(resume({"data.prepared=" + mixed}), {name, "octavo prepare"});
  }
}

TEST_F(BadFiles, AFullDiskWhilePreparingLeavesNothingHalf) {
  const std::string prepared = "data.prepared=" + folder_->path("small_disk");
  struct Case {
    int bytes;
    const char* file;
  };
  // What fits is kept, and the next attempt goes on from it.
  for (const Case& c : {Case{4096, "subwords.model"}, Case{20480, "train.0.corpus"}}) {
    expect_user_error(with_small_files(c.bytes, folder_->prepare_arguments({prepared})),
                      {c.file, "File too large", "nothing was kept"});
    for (const auto& entry : fs::directory_iterator(folder_->path("small_disk")))
      EXPECT_THAT(entry.path().string(), Not(HasSubstr(".tmp")));
    EXPECT_FALSE(fs::exists(folder_->path("small_disk/") + c.file));
  }
  const ProgramResult enough = folder_->prepare({prepared});
  ASSERT_EQ(enough.exit_code, 0) << enough.err;
  for (const char* name : {"train.0.corpus", "dev.corpus", "subwords.model", "prepared.json"})
    EXPECT_TRUE(read_file(folder_->path("small_disk/") + name) ==
                read_file(folder_->path("prepared/") + name))
        << name;
}

TEST_F(BadFiles, AFullDiskWhileSavingLeavesTheCheckpointBefore) {
  copy("run", "damaged");
  // The optimiser's state, which comes first, takes 105 kB, the weights half of that.
  for (const int bytes : {20480, 81920}) {
    expect_user_error(
        with_small_files(bytes, folder_->train_arguments("damaged", settings(6))),
        {"cannot save the checkpoint", "step_00000006", "optimizer.safetensors: File too large",
         "Checkpoints saved before are untouched"});
    EXPECT_FALSE(fs::exists(folder_->path("damaged/checkpoints/step_00000006")));
    EXPECT_FALSE(fs::exists(folder_->path("damaged/checkpoints/step_00000006.octavo.tmp")));
    const ProgramResult before =
        ExperimentFolder::octavo({"inspect", folder_->path("damaged") + kNewest});
    EXPECT_THAT(before.out, HasSubstr("every file is as it was written"));
  }
  const ProgramResult room = resume();
  ASSERT_EQ(room.exit_code, 0) << room.err;
  expect_whole("damaged");
  EXPECT_EQ(folder_->records("damaged").size(), 6U);

  expect_user_error(with_small_files(20480, {OCTAVO_PROGRAM, "average", folder_->path("run"),
                                             "--last", "2", "--output", folder_->path("average")}),
                    {"cannot save", "average", "File too large"});
  EXPECT_FALSE(fs::exists(folder_->path("average")));
}

TEST_F(BadFiles, AFullDiskWhileLoggingIsSaidAndTrainingGoesOn) {
  // A model whose checkpoints are smaller than its log.
  std::vector<std::string> small = settings(150);
  for (const char* s : {"model.width=4", "model.hidden=4", "model.heads=1",
                        "trainer.checkpoints.every_updates=none"})
    small.emplace_back(s);
  const ProgramResult result = with_small_files(30720, folder_->train_arguments("logs", small));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("warning: [trainer] cannot write " +
                                    folder_->path("logs/metrics.jsonl: File too large")));
  EXPECT_THAT(result.err, HasSubstr("records are missing in " + folder_->path("logs/metrics")));
  EXPECT_THAT(result.err, HasSubstr("[trainer] finished: 150 updates"));
  EXPECT_GT(folder_->records("logs").size(), 10U);  // whole lines, all of them
  EXPECT_LT(folder_->records("logs").size(), 150U);
}

// The corpus is mapped: reading what is not there any more would be a SIGBUS without a word.
TEST_F(BadFiles, ACorpusThatIsCutShortInUseIsNamed) {
  setenv("OCTAVO", OCTAVO_PROGRAM, 1);  // for train.sh
  for (const int ranks : {1, 2}) {
    const std::string data = copy("prepared", "cut");
    fs::remove_all(folder_->path("cut_run"));
    const std::vector<std::string> endless =
        settings(100000000, {"data.prepared=" + data, "trainer.checkpoints.every_updates=none",
                             "trainer.max_minutes=1"});
    std::vector<std::string> command = folder_->train_arguments("cut_run", endless);
    if (ranks > 1) {
      command.erase(command.begin(), command.begin() + 2);  // the program and "train"
      command.insert(command.begin(), std::string(OCTAVO_SOURCE_DIR) + "/launch/train.sh");
      command.insert(command.end(), {"--ranks", std::to_string(ranks)});
    }
    command.insert(command.begin(),
                   {data + "/train.0.corpus", folder_->path("cut_run/metrics.jsonl")});
    const ProgramResult result = run_shell(
        "corpus=$1 log=$2 waits=0; shift 2; \"$@\" & "
        "until [ -s \"$log\" ] || [ $waits -gt 400 ]; do sleep 0.05; waits=$((waits + 1)); done; "
        ": > \"$corpus\"; wait $!",
        command);
    // A peer that sees this rank go before it reads the file itself ends with 3.
    EXPECT_TRUE(result.exit_code == 2 || (ranks > 1 && result.exit_code == 3)) << result.exit_code;
    EXPECT_THAT(result.err, HasSubstr("error: the file was cut short, or its disk failed, while it "
                                      "was read: " +
                                      data + "/train.0.corpus. Bring it back and start again.\n"));
  }
}

TEST_F(BadFiles, FoldersInThePlaceOfFilesAreNamed) {
  for (const char* name : {"metrics.jsonl", "resolved.yaml"}) {
    make_folder_of(copy("run", "damaged") + "/" + name);
    expect_user_error(resume(), {name});
  }
  for (const char* name : {"tensorboard", "checkpoints"}) {
    const std::string path = copy("run", "damaged") + "/" + name;
    fs::remove_all(path);
    write(path, "a file");
    expect_user_error(resume(), {name, "Not a directory"});
  }
}

}  // namespace
}  // namespace octavo
