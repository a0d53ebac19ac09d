// SPDX-License-Identifier: MIT
#pragma once
#include "sample.hpp"

#include <array>

namespace top {

// The numbers that a page draws, over time.
struct History {
    static constexpr size_t kinds = 6; // processor, memory, read, written, requests or messages, waiting or queued
    using Point = std::array<double, kinds>;
    std::map<std::string, std::vector<std::pair<double, Point>>> of; // by process; seconds since the first sample

    void add(const Job &job);

  private:
    double first_ = -1;
};

// One file without references to others. Returns an error text, empty: it was written.
std::string write_page(const std::string &file, const std::string &title, const Job &job, const History &history);

} // namespace top
