// SPDX-License-Identifier: MIT
#pragma once
// One line about long work on the terminal behind stderr. The cursor stays at the begin of the line, so whatever else
// is written there replaces it; nothing is written if stderr is a file or a pipe.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

namespace muster {

// Used by one thread.
class TerminalLine {
  public:
    TerminalLine() noexcept {
        const char *const terminal = getenv("TERM");
        is_terminal_ = isatty(STDERR_FILENO) == 1 && (terminal == nullptr || strcmp(terminal, "dumb") != 0);
    }
    bool is_possible() const noexcept { return is_terminal_; }

    void show(std::string text) { // empty: erase()
        if (!is_terminal_) return;
        if (text.empty()) return erase();
        if (const size_t room = columns() - 1; text.size() > room) text.resize(room);
        fprintf(stderr, "\r%s\033[K\r", text.c_str());
        is_shown_ = true;
    }

    void erase() noexcept {
        if (is_shown_) fprintf(stderr, "\r\033[K");
        is_shown_ = false;
    }

  private:
    static size_t columns() noexcept {
        winsize size{};
        return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
    }

    bool is_terminal_ = false, is_shown_ = false;
};

} // namespace muster
