#include "data/prepare.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/lines.h"
#include "data/prepared.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;

const fs::path kSamples = fs::path(OCTAVO_SOURCE_DIR) / "tests/samples/libreoffice-help";

/// Small files of real text, so that a preparation takes a moment.
class Prepare : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* side : {"en", "de"}) {
      write_lines(std::string("a.") + side, std::string("test.") + side, 0, 150);
      write_lines(std::string("b.") + side, std::string("test.") + side, 150, 200);
      write_lines(std::string("dev.") + side, std::string("dev.") + side, 0, 20);
    }
    config_.prepared = (folder_ / "prepared").string();
    config_.train = {{.source = path("a.en"), .target = path("a.de")},
                     {.source = path("b.en"), .target = path("b.de"), .weight = 2}};
    config_.dev = {.source = path("dev.en"), .target = path("dev.de")};
    config_.subwords.vocabulary_size = 600;
  }

  void write_lines(const std::string& name, const std::string& from, std::size_t begin,
                   std::size_t end) const {
    const auto lines = read_lines(kSamples / from);
    std::string text;
    for (std::size_t i = begin; i < end; ++i) text += lines[i] + "\n";
    folder_.write(name, text);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  fs::path made(const std::string& name) const { return fs::path(config_.prepared) / name; }

  /// Names of the parts that prepare() had to make.
  std::vector<std::string> run(int threads = 1) const {
    std::vector<std::string> names;
    for (const PreparedPart& part : prepare(config_, threads)) {
      if (part.made) names.push_back(part.name);
    }
    return names;
  }
  /// Every file of the prepared folder.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(config_.prepared))
      all[entry.path().filename().string()] = read_file(entry.path());
    return all;
  }

  TempFolder folder_;
  DataConfig config_;
};

using Names = std::vector<std::string>;

TEST_F(Prepare, MakesEverythingOnce) {
  EXPECT_EQ(run(), (Names{"subwords", "train.0", "train.1", "dev"}));
  const auto first = files();
  EXPECT_EQ(run(), Names{});
  EXPECT_EQ(files(), first);

  const PreparedData data = open_prepared(config_);
  EXPECT_TRUE(data.subwords.joint());
  EXPECT_EQ(data.subwords.source->vocabulary().size(), 600);
  EXPECT_EQ(read_file(made("subwords.vocab")), data.subwords.source->vocabulary().text());
  ASSERT_EQ(data.train.size(), 2u);
  EXPECT_EQ(data.train[0].rows(), 150);
  EXPECT_EQ(data.train[1].rows(), 50);
  EXPECT_FALSE(data.train[0].has("source_text"));
  ASSERT_TRUE(data.dev.has_value());
  EXPECT_EQ(data.dev->rows(), 20);
  EXPECT_EQ(data.dev->text(data.dev->column("target_text"), 3), read_lines(path("dev.de"))[3]);
}

TEST_F(Prepare, AnyNumberOfThreadsGivesTheSameFiles) {
  run(1);
  const auto one = files();
  fs::remove_all(config_.prepared);
  run(3);
  EXPECT_EQ(files(), one);
}

TEST_F(Prepare, RemakesWhatDependsOnAChange) {
  run();
  // A held-out text: that corpus alone.
  write_lines("dev.en", "dev.en", 20, 40);
  EXPECT_EQ(run(), Names{"dev"});
  // A limit: all corpora, not the model.
  config_.max_length = 40;
  EXPECT_EQ(run(), (Names{"train.0", "train.1", "dev"}));
  config_.max_ratio = std::nullopt;
  EXPECT_EQ(run(), (Names{"train.0", "train.1"}));
  // Sampling needs the text.
  config_.subwords.sample = 0.1;
  EXPECT_EQ(run(), (Names{"train.0", "train.1"}));
  EXPECT_TRUE(open_prepared(config_).train[1].has("source_text"));
  config_.subwords.sample = 0.2;
  EXPECT_EQ(run(), Names{});
  // The weight is a matter of training.
  config_.train[0].weight = 7;
  EXPECT_EQ(run(), Names{});
  // A training text: the model, so everything.
  write_lines("b.en", "test.en", 100, 150);
  EXPECT_EQ(run(), (Names{"subwords", "train.0", "train.1", "dev"}));
  config_.subwords.vocabulary_size = 610;
  EXPECT_EQ(run(), (Names{"subwords", "train.0", "train.1", "dev"}));
  // Touching a file without changing it is no change.
  const std::string text = read_file(path("a.en"));
  write_file(path("a.en"), text);
  EXPECT_EQ(run(), Names{});
}

TEST_F(Prepare, MendsItsFiles) {
  run();
  const auto whole = files();
  fs::remove(made("train.1.corpus"));
  EXPECT_EQ(run(), Names{"train.1"});
  std::string flipped = whole.at("train.0.corpus");
  flipped[100] ^= 1;
  write_file(made("train.0.corpus"), flipped);
  EXPECT_EQ(run(), Names{"train.0"});
  write_file(made("dev.corpus"), whole.at("dev.corpus").substr(0, 500));
  EXPECT_EQ(run(), Names{"dev"});
  write_file(made("subwords.vocab"), "0\tpad\t<pad>\n");
  EXPECT_EQ(run(), Names{"subwords"});
  EXPECT_EQ(files(), whole);
}

TEST_F(Prepare, GoesOnAfterBeingKilledAnywhere) {
  run();
  const auto whole = files();
  // A file-size limit breaks it off at ever later points; what a kill leaves half-written is put
  // there by hand.
  fs::remove_all(config_.prepared);
  int failures = 0;
  for (const std::int64_t limit : {10, 2000, 5000, 8000, 12000, 20000, 60000}) {
    const std::string said = testkit::with_file_size_limit(
        limit, [&]() -> std::string { return message_of<UserError>([&] { run(); }); });
    failures += said != "nothing thrown";
    if (fs::exists(config_.prepared)) {
      write_file(made("train.0.corpus.tmp.99999"), "half");
      write_file(made("subwords.model.tmp.99999"), "half");
    }
  }
  EXPECT_GE(failures, 3);
  run();
  EXPECT_EQ(files(), whole);
}

TEST_F(Prepare, SeparateModels) {
  config_.subwords.joint = false;
  config_.subwords.vocabulary_size = 500;
  run();
  const PreparedData data = open_prepared(config_);
  EXPECT_FALSE(data.subwords.joint());
  EXPECT_NE(data.subwords.source->hash(), data.subwords.target->hash());
  EXPECT_FALSE(fs::exists(made("subwords.model")));
  // Back to a joint one: the old ones are gone.
  config_.subwords.joint = true;
  run();
  EXPECT_TRUE(open_prepared(config_).subwords.joint());
  EXPECT_FALSE(fs::exists(made("source.model")));
}

TEST_F(Prepare, AFailureLeavesWhatWasMadeBefore) {
  run();
  const auto whole = files();
  const std::int64_t size = config_.subwords.vocabulary_size;
  config_.subwords.vocabulary_size = 1'000'000;
  EXPECT_THAT(message_of<UserError>([&] { run(); }), HasSubstr("pieces"));
  EXPECT_EQ(files(), whole);
  config_.subwords.vocabulary_size = size;
  EXPECT_EQ(run(), Names{});
}

TEST_F(Prepare, TakesAModelFromItsOwnFolder) {
  run();
  const std::string model = read_file(made("subwords.model"));
  config_.subwords.model = made("subwords.model").string();
  run();
  EXPECT_EQ(read_file(made("subwords.model")), model);
}

TEST_F(Prepare, TakesAModelMadeElsewhere) {
  run();
  fs::copy(made("subwords.model"), folder_ / "mine.model");
  DataConfig other = config_;
  other.prepared = path("other");
  other.subwords.model = path("mine.model");
  prepare(other, 1);
  const PreparedData ours = open_prepared(config_), theirs = open_prepared(other);
  EXPECT_EQ(theirs.subwords.source->hash(), ours.subwords.source->hash());
  EXPECT_EQ(theirs.train.at(0).content_hash(), ours.train.at(0).content_hash());
  folder_.write("mine.model", "no model");
  EXPECT_THAT(message_of<UserError>([&] { prepare(other, 1); }),
              HasSubstr("not a SentencePiece model"));
}

TEST_F(Prepare, RefusesUnequalFilesBeforeTrainingAModel) {
  write_lines("b.de", "test.de", 150, 199);
  EXPECT_THAT(message_of<UserError>([&] { run(); }),
              ::testing::AllOf(HasSubstr("data.train[1]: "), HasSubstr("b.en has 50 lines but "),
                               HasSubstr("b.de has 49.")));
  EXPECT_FALSE(fs::exists(made("subwords.model")));
}

TEST_F(Prepare, SaysWhatIsWrong) {
  DataConfig broken = config_;
  broken.dev.source = path("nowhere.en");
  EXPECT_THAT(message_of<UserError>([&] { prepare(broken, 1); }), HasSubstr("nowhere.en"));
  broken = config_;
  broken.prepared = path("a.en");
  EXPECT_THAT(message_of<UserError>([&] { prepare(broken, 1); }), HasSubstr("data.prepared: "));
  broken.prepared = path("a.en") + "/below";
  EXPECT_THAT(message_of<UserError>([&] { prepare(broken, 1); }), HasSubstr("data.prepared: "));
  run();
  write_file(made("prepared.json"), "{");
  EXPECT_THAT(message_of<UserError>([&] { run(); }),
              HasSubstr("prepared.json: the file is damaged"));
}

TEST_F(Prepare, AnUnwritableFolderIsAnError) {
  fs::create_directories(config_.prepared);
  fs::permissions(config_.prepared, fs::perms::owner_read | fs::perms::owner_exec |
                                        fs::perms::others_read | fs::perms::others_exec);
  fs::permissions(folder_.path(), fs::perms::all);
  EXPECT_THAT(testkit::as_ordinary_user(
                  [&]() -> std::string { return message_of<UserError>([&] { run(); }); }),
              HasSubstr("Permission denied"));
  fs::permissions(config_.prepared, fs::perms::owner_all);
}

TEST_F(Prepare, OneProcessAtATime) {
  run();
  const int descriptor = ::open(made("lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  EXPECT_THAT(message_of<UserError>([&] { run(); }), HasSubstr("is in use by process"));
  ::close(descriptor);
  EXPECT_EQ(run(), Names{});
}

TEST_F(Prepare, OpeningRefusesWhatDoesNotFit) {
  const auto message = [&](const DataConfig& config) {
    return message_of<UserError>([&] { open_prepared(config); });
  };
  EXPECT_THAT(message(config_), HasSubstr("has no 'subwords' yet"));
  run();
  EXPECT_EQ(message(config_), "nothing thrown");

  DataConfig changed = config_;
  changed.max_length = 99;
  EXPECT_THAT(message(changed), HasSubstr("made with data.max_length = 256, but it is 99 now"));
  changed = config_;
  changed.subwords.vocabulary_size = 8000;
  EXPECT_THAT(message(changed), HasSubstr("data.subwords.vocabulary_size = 600, but it is 8000"));
  changed = config_;
  changed.train[1].source = path("a.en");
  EXPECT_THAT(message(changed), HasSubstr("data.train[1].source"));
  changed = config_;
  changed.train.push_back(changed.train[0]);
  EXPECT_THAT(message(changed), HasSubstr("has no 'train.2' yet"));
  changed = config_;
  changed.dev = {};
  EXPECT_EQ(message(changed), "nothing thrown");

  // The text itself isn't needed any more.
  for (const char* name : {"a.en", "a.de", "b.en", "b.de", "dev.en", "dev.de"})
    fs::remove(folder_ / name);
  EXPECT_EQ(message(config_), "nothing thrown");

  fs::copy_file(made("train.1.corpus"), made("train.0.corpus"),
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(message(config_), HasSubstr("were not made together"));
}

TEST_F(Prepare, OpeningRefusesWhatIsDamagedOrGone) {
  const auto message = [&] { return message_of<UserError>([&] { open_prepared(config_); }); };
  run();
  std::string bytes = read_file(made("train.0.corpus"));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(made("train.0.corpus"), bytes);
  EXPECT_THAT(message(), HasSubstr("train.0.corpus: the corpus is damaged"));
  fs::remove(made("train.0.corpus"));
  EXPECT_THAT(message(), HasSubstr("train.0.corpus is gone. Run 'octavo prepare' again"));
  run();
  write_file(made("subwords.vocab"), "0\tpad\t<pad>\n");
  EXPECT_THAT(message(), HasSubstr("subwords.vocab: this file is not what"));
}

TEST_F(Prepare, AFolderWithoutAModelIsNamed) {
  for (const bool joint : {true, false}) {
    EXPECT_THAT(
        message_of<UserError>([&] { load_subwords(folder_.path(), joint); }),
        HasSubstr(joint ? "subwords.model: the subword model is gone" : "source.model: the"));
  }
}

TEST_F(Prepare, OthersFilesAreNeitherReplacedNorRemoved) {
  const auto message = [&] { return message_of<UserError>([&] { run(); }); };
  fs::create_directories(config_.prepared);
  write_file(made("source.model"), "mine");
  EXPECT_THAT(message(), HasSubstr("source.model, which it did not make"));
  EXPECT_EQ(read_file(made("source.model")), "mine");
  fs::rename(made("source.model"), made("my.model"));
  write_file(made("old.corpus.tmp.12"), "mine, too");
  write_file(made("train.0.corpus.tmp.12"), "half-written");
  run();
  EXPECT_EQ(read_file(made("my.model")), "mine");
  EXPECT_TRUE(fs::exists(made("old.corpus.tmp.12")));
  EXPECT_FALSE(fs::exists(made("train.0.corpus.tmp.12")));
}

TEST_F(Prepare, AModelOfAnotherPreparationBesideOursIsNotTaken) {
  config_.subwords.joint = false;
  run();
  write_file(made("subwords.model"), "no model at all");
  EXPECT_NE(open_prepared(config_).subwords.source->hash(),
            open_prepared(config_).subwords.target->hash());
  EXPECT_EQ(read_file(made("subwords.model")), "no model at all");
}

TEST_F(Prepare, RefusesInputsThatItWouldReplace) {
  const auto message = [&] { return message_of<UserError>([&] { run(); }); };
  run();
  const std::string vocabulary = read_file(made("subwords.vocab"));
  config_.subwords.model = made("subwords.vocab").string();
  EXPECT_THAT(message(), HasSubstr("data.subwords.model: "));
  EXPECT_THAT(message(), HasSubstr("lies where 'octavo prepare' writes: it is subwords.vocab"));
  EXPECT_EQ(read_file(made("subwords.vocab")), vocabulary);
  config_.subwords.model.reset();
  config_.train[1].source = made("../prepared/dev.corpus").string();
  EXPECT_THAT(message(), HasSubstr("data.train[1].source: "));
}

TEST_F(Prepare, RefusesInputsThatCanBeReadOnlyOnce) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  config_.dev.target = path("pipe");
  EXPECT_THAT(message_of<UserError>([&] { run(); }), HasSubstr("pipe is no ordinary file"));
}

TEST_F(Prepare, TwoModelsAreReplacedTogetherOrNotAtAll) {
  config_.subwords.joint = false;
  run();
  const std::string source = read_file(made("source.model"));
  fs::copy_file(made("target.model"), path("good.model"));
  folder_.write("bad.model", "no model at all");
  config_.subwords.source_model = path("good.model");
  config_.subwords.target_model = path("bad.model");
  EXPECT_THAT(message_of<UserError>([&] { run(); }), HasSubstr("bad.model"));
  EXPECT_EQ(read_file(made("source.model")), source);
}

TEST(DataConfig, ReadsAndChecks) {
  const TempFolder folder;
  const auto read = [&](const std::string& yaml) {
    DataConfig config;
    read_settings(config, folder.write("c.yaml", yaml));
    return config;
  };
  const std::string least = "prepared: p\ntrain:\n- {source: a, target: b}\n";
  const DataConfig config = read(least);
  EXPECT_EQ(config.train[0].target, "b");
  EXPECT_EQ(config.train[0].weight, 1);
  EXPECT_FALSE(config.dev.given());
  EXPECT_EQ(read(least + "subwords: {kind: unigram, sample: 0.2}\n").subwords.kind,
            SubwordKind::unigram);
  const auto message = [&](const std::string& more) {
    return message_of<UserError>([&] { read(least + more); });
  };
  EXPECT_THAT(message("dev: {source: x}\n"), HasSubstr("source and target go together"));
  EXPECT_THAT(message("subwords: {joint: false, model: m}\n"), HasSubstr("joint"));
  EXPECT_THAT(message("subwords: {source_model: m, target_model: n}\n"), HasSubstr("joint"));
  EXPECT_THAT(message("subwords: {joint: false, source_model: m}\n"), HasSubstr("go together"));
  EXPECT_THAT(message("subwords: {vocabulary_size: 200}\n"), HasSubstr("261"));
  EXPECT_THAT(message("max_ratio: 0.5\n"), HasSubstr("max_ratio"));
  EXPECT_THAT(message_of<UserError>([&] { read("prepared: p\n"); }), HasSubstr("train"));
}

}  // namespace
}  // namespace octavo
