#pragma once

#include <string>

namespace octavo {

/// What a run says when it ends before its time, and with which code.
///
/// Once a rank has died, mpirun holds back what the others print until its waiting times are over,
/// and once it was signalled its own exit code is 1. So launch/train.sh names a file in
/// OCTAVO_LAST_WORDS and shows what it finds there: "say LINE" for the user, "note LINE", "exit
/// CODE". Without that file, or on another host than the launcher's, words go to the log.

/// Shows an error, once for the caller: "error: " is put before it.
void say_last_words(const std::string& text);

/// Says one line, which ends in '\n', of a run that ends with code 2. Signal handlers may call it.
void say_line_at_once(const char* line);

/// What the log has just said, for the launcher to repeat if mpirun was signalled: from then on
/// mpirun shows nothing of what ranks write.
void leave_note(const std::string& text);

/// Tells the launcher that from now on the ranks can be asked to stop: the file's name and ".ready"
/// is a file then.
void tell_ready();

/// Tells the launcher the exit code of the run, 0..255. Signal handlers may call it.
void tell_exit_code(int exit_code);

}  // namespace octavo
