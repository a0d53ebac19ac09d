// SPDX-License-Identifier: MIT
// Runs a fuzz target without libFuzzer: every file of a corpus, and for each of them a few hundred inputs made from it
// by a fixed sequence of random changes, so that gcc builds and sanitizer runs meet more than the files themselves.
#include "input.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

uint64_t next_random(uint64_t &state) { // xorshift: the same numbers in every run
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

std::vector<uint8_t> changed(std::vector<uint8_t> bytes, uint64_t &state) {
    const int changes = 1 + static_cast<int>(next_random(state) % 4);
    for (int i = 0; i < changes; i++) {
        const size_t at = bytes.empty() ? 0 : next_random(state) % bytes.size();
        switch (next_random(state) % 5) {
        case 0:
            if (!bytes.empty()) bytes[at] = static_cast<uint8_t>(next_random(state));
            break;
        case 1:
            if (!bytes.empty()) bytes[at] ^= static_cast<uint8_t>(1u << next_random(state) % 8);
            break;
        case 2:
            bytes.resize(at);
            break;
        case 3:
            bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), 1 + next_random(state) % 20, 0xff);
            break;
        default:
            if (!bytes.empty())
                bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                            bytes.begin() + static_cast<std::ptrdiff_t>(at + next_random(state) % (bytes.size() - at)));
        }
    }
    return bytes;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: replay_<target> <corpus folder or file>\n");
        return 2;
    }
    std::vector<std::filesystem::path> files;
    if (std::filesystem::is_directory(argv[1])) {
        for (const auto &entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
    } else {
        files.emplace_back(argv[1]);
    }
    std::sort(files.begin(), files.end());
    size_t runs = 0;
    for (const auto &path : files) {
        std::ifstream file(path, std::ios::binary);
        const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
        uint64_t state = 0x9e3779b97f4a7c15u + bytes.size();
        for (int i = 0; i < 300; i++) {
            const std::vector<uint8_t> other = changed(bytes, state);
            LLVMFuzzerTestOneInput(other.data(), other.size());
        }
        runs += 301;
    }
    printf("%zu files, %zu inputs\n", files.size(), runs);
    return files.empty() ? 1 : 0;
}
