#include "comm/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace octavo {
namespace {

using testing::HasSubstr;

void pause_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// Waits up to 5 s.
template <typename F>
bool comes_true(F&& condition) {
  for (int i = 0; i < 500 && !condition(); ++i) pause_ms(10);
  return condition();
}

class WatchdogTest : public testing::Test {
 protected:
  std::atomic<int> overdue_ = 0, vanished_ = 0, last_vanished_ = -1;
  Watchdog::Callbacks callbacks_{.overdue = [this] { ++overdue_; },
                                 .vanished =
                                     [this](int rank) {
                                       last_vanished_ = rank;  // before the count tells of it
                                       ++vanished_;
                                     }};

  // A process that only sleeps.
  static pid_t start_child() {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    return child;
  }
  static void end_child(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
};

TEST_F(WatchdogTest, ReportsACollectiveThatTakesTooLong) {
  Watchdog dog(0.1, {}, callbacks_);
  dog.begin("barrier", 0, DType::u8);
  EXPECT_TRUE(comes_true([&] { return overdue_ == 1; }));
  pause_ms(200);
  EXPECT_EQ(1, overdue_) << "once is enough";
}

TEST_F(WatchdogTest, IsQuietBetweenCollectives) {
  Watchdog dog(0.2, {}, callbacks_);
  for (int i = 0; i < 10; ++i) {
    dog.begin("all-reduce", 100, DType::f32);
    pause_ms(30);
    dog.end();
  }
  pause_ms(300);
  EXPECT_EQ(0, overdue_);
  dog.set_limit(100.0);
  dog.begin("barrier", 0, DType::u8);
  pause_ms(400);
  EXPECT_EQ(0, overdue_);
}

// In a child, because the test itself must go on.
TEST_F(WatchdogTest, DoesNotCountTheTimeItWasStopped) {
  const pid_t child = fork();
  if (child == 0) {
    Watchdog dog(1.5, {}, callbacks_);
    dog.begin("barrier", 0, DType::u8);
    pause_ms(50);
    raise(SIGSTOP);
    pause_ms(200);
    _exit(overdue_);
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  ASSERT_TRUE(WIFSTOPPED(status));
  pause_ms(1700);
  kill(child, SIGCONT);
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_F(WatchdogTest, NamesTheLastCollective) {
  Watchdog dog(100.0, {}, callbacks_);
  EXPECT_EQ("no collective yet", dog.last_collective());
  dog.begin("broadcast", 3, DType::u8);
  dog.end();
  dog.begin("all-reduce", 1000, DType::f32);
  EXPECT_THAT(dog.last_collective(), HasSubstr("collective 2 (all-reduce, 1000 x f32), waiting"));
  dog.end();
  EXPECT_THAT(dog.last_collective(), HasSubstr("collective 2 (all-reduce, 1000 x f32), done"));
}

TEST_F(WatchdogTest, SeesAPeerVanish) {
  const pid_t first = start_child(), second = start_child();
  const LocalPeer peers[] = {{.rank = 4, .pid = first}, {.rank = 7, .pid = second}};
  Watchdog dog(100.0, peers, callbacks_);
  pause_ms(100);
  EXPECT_EQ(0, vanished_);
  kill(second, SIGKILL);  // a zombie has vanished, too
  EXPECT_TRUE(comes_true([&] { return vanished_ == 1; }));
  EXPECT_EQ(7, last_vanished_);
  end_child(first);
  EXPECT_TRUE(comes_true([&] { return vanished_ == 2; }));
  EXPECT_EQ(4, last_vanished_);
  waitpid(second, nullptr, 0);
}

TEST_F(WatchdogTest, SeesAPeerThatHadEndedBefore) {
  const pid_t child = start_child();
  end_child(child);
  const LocalPeer peer{.rank = 3, .pid = child};
  const Watchdog dog(100, {&peer, 1}, callbacks_);
  EXPECT_TRUE(comes_true([&] { return vanished_ == 1; }));
  EXPECT_EQ(3, last_vanished_);
  pause_ms(300);
  EXPECT_EQ(1, vanished_) << "once is enough";
}

TEST_F(WatchdogTest, LetsPeersGo) {
  const pid_t child = start_child();
  const LocalPeer peer{.rank = 1, .pid = child};
  Watchdog dog(100.0, {&peer, 1}, callbacks_);
  dog.let_peers_go();
  end_child(child);
  pause_ms(400);
  EXPECT_EQ(0, vanished_);
}

}  // namespace
}  // namespace octavo
