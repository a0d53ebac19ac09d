// SPDX-License-Identifier: MIT
#include "group/operation.hpp"

#include "base/codec.hpp"

#include "base/config.hpp"
#include "base/hash.hpp"

namespace muster {

namespace {
constexpr uint32_t head_magic = 0x5247534D; // "MSGR"

constexpr uint64_t max_total_bytes = uint64_t{1} << 62;

struct KindTraits {
    const char *name;
    bool has_root, reduces, has_blocks, takes_counts;
};
constexpr KindTraits traits[] = {
    {"?", false, false, false, false},         {"barrier", false, false, false, false},
    {"broadcast", true, false, false, false},  {"reduce", true, true, false, false},
    {"all-reduce", false, true, false, false}, {"reduce-scatter", false, true, true, true},
    {"scan", false, true, false, false},       {"gather", true, false, true, true},
    {"all-gather", false, false, true, true},  {"scatter", true, false, true, true},
    {"all-to-all", false, false, true, true},
};

const KindTraits &traits_of(uint32_t kind) noexcept {
    static constexpr KindTraits close = {"close", false, false, false, false};
    if (kind == group_close_kind) return close;
    return kind < std::size(traits) ? traits[kind] : traits[0];
}

// The fields of word 1 of a fingerprint: first bit, and number of bits.
struct Bits {
    int at, width;
    constexpr uint64_t put(uint64_t value) const noexcept { return value << at; }
    constexpr uint64_t get(uint64_t word) const noexcept { return word >> at & ((uint64_t{1} << width) - 1); }
};
constexpr Bits kind_bits{0, 8}, type_bits{8, 8}, flag_bits{16, 8}, reduction_bits{24, 16}, root_bits{40, 13};
constexpr uint32_t with_counts_flag = 128; // of ALL_TO_ALL, whose counts differ

Result<void> check_counts(const char *name, const uint64_t *from, uint32_t size, std::vector<uint64_t> &to) {
    to.assign(from, from + size);
    uint64_t sum = 0;
    for (uint32_t rank = 0; rank < size; rank++)
        if (__builtin_add_overflow(sum, to[rank], &sum) || sum > max_total_bytes)
            return Error::make(MUSTER_E_ARG, "%s: more than 2^62 elements up to rank %u", name, rank);
    return {};
}

} // namespace

bool GroupOperation::has_root() const noexcept {
    return traits_of(kind).has_root;
}

bool GroupOperation::reduces() const noexcept {
    return traits_of(kind).reduces;
}

Result<void> GroupOperation::read(const muster_group_operation &given, uint32_t rank, uint32_t size,
                                  const Reduction *(*find)(void *of, uint32_t number), void *of) {
    muster_group_operation config;
    if (auto ok = read_config(&given, config, "muster_group_operation"); !ok) return ok.error();
    if (config.kind == 0 || config.kind >= std::size(traits))
        return Error::make(MUSTER_E_ARG, "kind is %u: there is no such operation", config.kind);
    const KindTraits &is = traits[config.kind];
    kind = config.kind;
    if (config.flags & ~(config.kind == MUSTER_GROUP_SCAN ? uint32_t{MUSTER_GROUP_EXCLUSIVE} : 0u))
        return Error::make(MUSTER_E_ARG, "%s: flags has unknown bits: 0x%x", is.name, config.flags);
    flags = config.flags;
    if (kind == MUSTER_GROUP_BARRIER) return {};
    if (is.has_root && config.root >= size)
        return Error::make(MUSTER_E_ARG, "%s: root is %u, the group has %u members", is.name, config.root, size);
    root = is.has_root ? config.root : 0;
    reduction.type = config.type;
    reduction.element_bytes = static_cast<uint32_t>(bytes_of_type(config.type));
    if (is.reduces) {
        reduction.number = config.reduction;
        const Reduction *const of_host = config.reduction >= 256 ? find(of, config.reduction) : nullptr;
        if (config.reduction >= 256 && of_host == nullptr)
            return Error::make(MUSTER_E_ARG, "%s: reduction is %u, which was not added", is.name, config.reduction);
        if (of_host != nullptr) {
            if (config.type != MUSTER_TYPE_OF_REDUCTION && of_host->element_bytes != reduction.element_bytes)
                return Error::make(MUSTER_E_ARG, "%s: reduction %u has elements of %u bytes, type is %s", is.name,
                                   config.reduction, of_host->element_bytes, name_of_type(config.type));
            reduction = *of_host;
            reduction.type = config.type;
        } else if (!reduction.is_valid()) {
            return Error::make(MUSTER_E_ARG, "%s: type %u (%s) has no reduction %u (%s)", is.name, config.type,
                               name_of_type(config.type), config.reduction, name_of_reduction(config.reduction));
        }
    }
    if (reduction.element_bytes == 0)
        return Error::make(MUSTER_E_ARG, "%s: type is %u: there is no such type", is.name, config.type);
    if (config.counts != nullptr && !is.takes_counts)
        return Error::make(MUSTER_E_ARG, "%s: counts is given, and all blocks have count elements", is.name);
    count = config.counts == nullptr ? config.count : 0;
    uint64_t all_bytes = 0;
    if (__builtin_mul_overflow(count, size * element_bytes(), &all_bytes) || all_bytes > max_total_bytes)
        return Error::make(MUSTER_E_ARG, "%s: count is %llu, more than 2^62 bytes in all", is.name,
                           static_cast<unsigned long long>(config.count));
    const bool to_all = kind == MUSTER_GROUP_ALL_TO_ALL;
    if (config.counts != nullptr) {
        if (auto ok = check_counts("counts", config.counts, size, counts); !ok) return ok.error();
        if (to_all && config.output_counts == nullptr)
            return Error::make(MUSTER_E_ARG, "%s: counts is given, and output_counts is not", is.name);
    }
    if (config.output_counts != nullptr) {
        if (!to_all || config.counts == nullptr)
            return Error::make(MUSTER_E_ARG, "%s: output_counts is given, and is not used", is.name);
        if (auto ok = check_counts("output_counts", config.output_counts, size, sources); !ok) return ok.error();
    }
    uint64_t total = count;
    if (is.has_blocks) {
        offsets.resize(size + size_t{1});
        for (uint32_t r = 0; r < size; r++) offsets[r + 1] = offsets[r] + block(r);
        total = offsets[size];
        for (const uint64_t one : sources) total = std::max(total, one);
        if (total > max_total_bytes / element_bytes())
            return Error::make(MUSTER_E_ARG, "%s: more than 2^62 bytes in all", is.name);
    }
    input = static_cast<const unsigned char *>(config.input);
    output = static_cast<unsigned char *>(config.output);
    const bool at_root = !is.has_root || rank == root;
    // Which arrays does this member need?
    const bool broadcast = kind == MUSTER_GROUP_BROADCAST, scatter = kind == MUSTER_GROUP_SCATTER;
    const bool needs_output = scatter ? !at_root : at_root || broadcast;
    const bool needs_input = scatter ? at_root : !at_root && !broadcast;
    if (total != 0 && needs_output && output == nullptr) return Error::make(MUSTER_E_ARG, "%s: no output", is.name);
    if (total != 0 && needs_input && input == nullptr) return Error::make(MUSTER_E_ARG, "%s: no input", is.name);
    if (scatter || broadcast) {
        in_place = broadcast || output == nullptr;
    } else if (at_root && (input == nullptr || input == output)) {
        in_place = true;
        if (kind == MUSTER_GROUP_GATHER || kind == MUSTER_GROUP_ALL_GATHER)
            input = output == nullptr ? nullptr : output + offset_bytes(rank);
        else
            input = output;
    }
    return {};
}

Fingerprint GroupOperation::fingerprint(uint64_t sequence) const noexcept {
    Fingerprint made;
    const bool to_all = kind == MUSTER_GROUP_ALL_TO_ALL;
    const uint32_t shown = flags | (to_all && !counts.empty() ? with_counts_flag : 0);
    made.word = {sequence,
                 kind_bits.put(kind) | type_bits.put(reduction.type) | flag_bits.put(shown) |
                     reduction_bits.put(reduction.number) | root_bits.put(root),
                 count, to_all || counts.empty() ? 0 : fnv1a(counts) | 1};
    return made;
}

const char *name_of_kind(uint32_t kind) noexcept {
    return traits_of(kind).name;
}

std::string describe(const Fingerprint &fingerprint) {
    const uint64_t word = fingerprint.word[1];
    const auto kind = static_cast<uint32_t>(kind_bits.get(word));
    const KindTraits &is = traits_of(kind);
    std::string text = std::string(is.name) + ' ' + std::to_string(fingerprint.word[0]);
    if (kind == MUSTER_GROUP_BARRIER || kind == group_close_kind) return text;
    const bool with_counts = fingerprint.word[3] != 0 || (flag_bits.get(word) & with_counts_flag);
    text += with_counts ? " with counts" : " of " + std::to_string(fingerprint.word[2]);
    text += std::string(" ") + name_of_type(static_cast<uint32_t>(type_bits.get(word)));
    const auto reduction = static_cast<uint32_t>(reduction_bits.get(word));
    if (is.reduces) text += std::string(" (") + name_of_reduction(reduction) + ')';
    if (is.has_root) text += ", root " + std::to_string(root_bits.get(word));
    return text;
}

Error failure_of_group(uint32_t rank, uint32_t kind, uint64_t sequence, const Error &why) {
    if (why.status != MUSTER_TIMEOUT && why.status != MUSTER_E_WOULD_DEADLOCK && why.status != MUSTER_E_NOMEM)
        return why;
    return Error::make(MUSTER_E_ABORTED, "rank %u: %s %llu: %s", rank, name_of_kind(kind),
                       static_cast<unsigned long long>(sequence),
                       why.status == MUSTER_TIMEOUT ? "timed out" : muster_status_text(why.status));
}

Error make_mismatch(uint32_t rank, const Fingerprint &own, uint32_t other_rank, const Fingerprint &other) {
    const uint32_t first = std::min(rank, other_rank), second = std::max(rank, other_rank);
    const std::string texts[] = {describe(rank < other_rank ? own : other), describe(rank < other_rank ? other : own)};
    const bool same = texts[0] == texts[1]; // they differ in what the text does not show
    Error made = Error::make(MUSTER_E_MISMATCH, "rank %u: %s; rank %u: %s%s", first, texts[0].c_str(), second,
                             texts[1].c_str(), same ? ", with other counts or flags" : "");
    made.rank = other_rank;
    return made;
}

void GroupMessageHead::put(char *to) const noexcept {
    PlacedByteWriter writer(to);
    writer.number(head_magic).number(uint32_t{0});
    for (const uint64_t word : fingerprint.word) writer.number(word);
    writer.number(payload_bytes);
}

std::optional<GroupMessageHead> GroupMessageHead::read(std::string_view from) noexcept {
    ByteReader reader(from);
    GroupMessageHead head;
    reader.expect(head_magic);
    reader.expect(uint32_t{0});
    for (uint64_t &word : head.fingerprint.word) word = reader.number<uint64_t>();
    head.payload_bytes = reader.number<uint64_t>();
    if (!reader.is_complete()) return std::nullopt;
    return head;
}

} // namespace muster
