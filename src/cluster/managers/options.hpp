// SPDX-License-Identifier: MIT
#pragma once
// The options of muster_launch::options: `name=value`, one on a line or separated by semicolons.
#include "base/result.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Values by name. A value ends at a newline or a semicolon; blanks around names and values are not part of them.
class ManagerOptions {
  public:
    static Result<ManagerOptions> parse(std::string_view text, const std::vector<std::string_view> &known);
    std::string text(const std::string &name, std::string_view otherwise = {}) const;
    Result<uint32_t> number(const std::string &name, uint32_t otherwise, uint32_t least, uint32_t most) const;
    Result<std::vector<std::string>> words(const std::string &name) const; // as split_words()
    bool has(const std::string &name) const { return values_.count(name) != 0; }

  private:
    std::map<std::string, std::string, std::less<>> values_;
};

// Words separated by blanks; within '...' every character is literal, within "..." all but \ and ".
Result<std::vector<std::string>> split_words(std::string_view text);
// Quoted as one word of a shell.
std::string shell_word(std::string_view text);

} // namespace muster
