"""launch/quickstart.sh with stand-ins for the programs it starts."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Each stand-in is called as what it stands for. The one that HANG names starts a process and waits for it.
STAND_IN = """#!/usr/bin/env bash
name=$(basename "$0")
[ "$name" != octavo ] || name=$1
[ "$name" != cmake ] || name=$1
echo "$name" >>"$CALLS"
if [ "$name" = "${HANG:-}" ]; then sleep 1000 & echo $! >"$CALLS.hangs"; wait; fi
case $name in
  average) mkdir -p runs/quickstart-en-de/average ;;
  translate) cat ;;
  evaluate) cat >/dev/null; echo "BLEU|signature = 12.34" ;;
  train.sh) echo '{"kind":"train","source_tokens_per_second":5,"target_tokens_per_second":6}' \
    >runs/quickstart-en-de/metrics.jsonl ;;
esac
"""
STEPS = ["--build", "fetch_text.sh", "prepare", "train.sh", "average", "translate"]


def is_running(process):
    try:
        stat = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


class Quickstart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.calls = self.root / "calls"
        for name in ("launch/install.sh", "launch/fetch_text.sh", "launch/train.sh", "bin/cmake",
                     "build/cpu-release/octavo"):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(STAND_IN)
            path.chmod(0o755)
        shutil.copy(ROOT / "launch/quickstart.sh", self.root / "launch")
        text = self.root / "out/quickstart-en-de/text"
        text.mkdir(parents=True)
        (self.root / "runs/quickstart-en-de/checkpoints/step_1").mkdir(parents=True)
        for suffix in ("en", "de", "domain"):
            for split in ("train", "test"):
                (text / f"{split}.{suffix}").write_text(f"{suffix}\n" * 1000)

    def start(self, hang=""):
        environment = dict(os.environ, PATH=f"{self.root}/bin:{os.environ['PATH']}", CALLS=str(self.calls),
                           HANG=hang)
        return subprocess.Popen([self.root / "launch/quickstart.sh"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=environment)

    def hanging_process(self):
        path = pathlib.Path(f"{self.calls}.hangs")
        for _ in range(3000):
            if path.exists() and path.read_text().endswith("\n"):
                break
            time.sleep(0.01)
        process = int(path.read_text())
        path.unlink()
        return process

    def test_goes_through_its_steps(self):
        process = self.start()
        out, err = process.communicate()
        self.assertEqual((process.returncode, err), (0, ""))
        called = self.calls.read_text().split()
        self.assertEqual([name for name in called if name in STEPS], STEPS)
        self.assertIn("speed of training: 5 source tokens/s, 6 target tokens/s\n", out)

    def test_a_signal_ends_every_step_and_all_of_its_processes(self):
        for number, step in enumerate(STEPS):
            with self.subTest(step):
                quickstart = self.start(step)
                hanging = self.hanging_process()
                quickstart.send_signal((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[number % 3])
                _, err = quickstart.communicate(timeout=30)
                self.assertEqual(quickstart.returncode, 130)
                self.assertTrue(err.endswith("[quickstart] stopped; run the same command again to go on\n"), err)
                self.assertFalse(is_running(hanging))

    def test_two_at_a_time_are_refused(self):
        first = self.start("fetch_text.sh")
        self.hanging_process()
        second = self.start()
        _, err = second.communicate(timeout=30)
        self.assertEqual(second.returncode, 2)
        self.assertIn("another quickstart of en-de is still running", err)
        first.terminate()
        first.communicate(timeout=30)


if __name__ == "__main__":
    unittest.main()
