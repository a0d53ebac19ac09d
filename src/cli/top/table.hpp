// SPDX-License-Identifier: MIT
#pragma once
#include "sample.hpp"

namespace top {

std::string what_is(const Process &process); // store, broker, agent, cluster; member: none of them
std::string details_of(const Process &process);

// Lines for a terminal of so many columns: a head, processes, and the last changes. 0: not limited.
std::vector<std::string> make_table(const Job &job, const std::string &title, size_t columns, size_t lines);

} // namespace top
