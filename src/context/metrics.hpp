// SPDX-License-Identifier: MIT
#pragma once
// What the objects of a context count, as text for people and for Prometheus. Each module describes its own objects:
// it has a MetricsNode in them, which is in the list of the context as long as the object exists.
#include "base/bound.hpp"
#include "base/list.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

class Context;
class Histogram;

// Names are those of Prometheus: base units, `_total` for what only grows. Static.
struct Metric {
    const char *name;
    enum Kind { counter, gauge, histogram } kind;
    const char *help;
};

// `name="text"`, with the characters that the format quotes, and nothing that moves a cursor.
std::string metric_label(std::string_view name, std::string_view text);

// Collects samples; those of one metric follow each other in the text, whatever their objects. One thread.
class MetricsWriter {
  public:
    // The labels of the samples that follow: of the object, and perhaps of a part of it. Each without braces.
    void set_labels(std::string labels) { labels_ = std::move(labels); }
    void add(const Metric &metric, double value, std::string_view more_labels = {});
    void add(const Metric &metric, const Histogram &histogram, std::string_view more_labels = {}); // in seconds
    std::string text() const;

  private:
    void add_line(std::string &lines, const char *name, const char *suffix, double value, std::string_view more_labels);
    std::string &lines_of(const Metric &metric);
    std::string labels_;
    std::vector<const Metric *> order_;
    std::map<std::string_view, std::string> samples_; // lines, by name
};

class MetricsNodeBase : public Listed<MetricsNodeBase> {
  public:
    virtual void write(MetricsWriter &writer) = 0; // bad_alloc

  protected:
    ~MetricsNodeBase() = default;

  private:
    friend class MetricsNodes;
    uint64_t number_ = 0;
};

// MetricsNode<Agent, &Agent::write_metrics> metrics_{*this};
template <class Owner, void (Owner::*Write)(MetricsWriter &)>
class MetricsNode final : public MetricsNodeBase {
  public:
    explicit MetricsNode(Owner &owner) noexcept : owner_(owner) {}

  private:
    void write(MetricsWriter &writer) override { (owner_.*Write)(writer); }
    Owner &owner_;
};

// Any thread. A node is written with the lock held, so its object takes no part in adding or removing others meanwhile.
class MetricsNodes {
  public:
    void add(MetricsNodeBase &node) noexcept;
    void add_part(MetricsNodeBase &node) noexcept; // that is no object of the host: without a number
    void remove(MetricsNodeBase &node) noexcept;   // nothing happens if it is not in the list
    void write(MetricsWriter &writer);

  private:
    std::mutex lock_; // for the rest
    uint64_t last_number_ = 0;
    List<MetricsNodeBase> list_;
};

// Of the process, of the context, and of its objects.
std::string metrics_text(Context &context);

} // namespace muster
