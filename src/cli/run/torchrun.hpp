// SPDX-License-Identifier: MIT
#pragma once
// The options of torchrun that `muster run` takes beside its own, so that command lines of torchrun can be used as they
// are.
#include "arguments.hpp"
#include "run/options.hpp"

namespace run {

// What they say; apply() turns that into the options of `muster run`, after all were read.
class Torchrun {
  public:
    std::vector<cli::Option> options();
    // The variables PET_NNODES, PET_RDZV_ENDPOINT and so on, which stand for options that are not given. Returns an
    // error text.
    static std::string read_environment(const std::vector<cli::Option> &known);
    // Returns an error text.
    std::string apply(Options &options) const;

  private:
    std::string apply_rendezvous(Options &options) const;
    void apply_python(Options &options) const;

    std::string backend_, endpoint_;
    bool is_module_ = false, no_python_ = false, run_path_ = false;
};

} // namespace run
