// SPDX-License-Identifier: MIT
#include "run/torchrun.hpp"

#include <cstdlib>
#include <unistd.h>

namespace run {

namespace {

constexpr char default_port[] = ":29400", default_run[] = "none"; // of torchrun

// An option that has no effect here: that is said once, and the value is not used.
cli::Option without_effect(const char *name, const char *why, bool has_value = true) {
    return {name,
            [name, why](const std::string &) {
                fprintf(stderr, "muster run: --%s has no effect: %s\n", name, why);
                return std::string();
            },
            has_value};
}

} // namespace

std::vector<cli::Option> Torchrun::options() {
    std::vector<cli::Option> all = {
        cli::text("rdzv-backend", backend_),
        cli::text("rdzv-endpoint", endpoint_),
        cli::flag("module", is_module_),
        cli::flag("no-python", no_python_),
        cli::flag("run-path", run_path_),
        without_effect("monitor-interval", "nothing is polled, failures are reported as they happen"),
        without_effect("start-method", "each worker is a program of its own"),
        without_effect("signals-to-handle", "SIGTERM, SIGINT and SIGHUP stop the workers, a second one at once"),
    };
    for (cli::Option &one : all)
        if (std::string_view(one.name) == "module") one.letter = 'm';
    return all;
}

std::string Torchrun::read_environment(const std::vector<cli::Option> &known) {
    for (const cli::Option &one : known) {
        std::string name = "PET_";
        for (const char *at = one.name; *at != '\0'; at++)
            name += *at == '-' ? '_' : static_cast<char>(toupper(static_cast<unsigned char>(*at)));
        const char *const value = getenv(name.c_str());
        if (value == nullptr || *value == '\0' || (!one.has_value && std::string_view(value) == "0")) continue;
        if (std::string wrong = one.set(value); !wrong.empty()) return name + ": " + wrong;
    }
    return {};
}

std::string Torchrun::apply(Options &options) const {
    if (std::string wrong = apply_rendezvous(options); !wrong.empty()) return wrong;
    apply_python(options);
    return {};
}

// Where the nodes meet, by the kind of store and its address; without a kind and with --master-addr the nodes are
// static.
std::string Torchrun::apply_rendezvous(Options &options) const {
    if (options.meets()) {
        if (!backend_.empty() || !endpoint_.empty())
            return "--rdzv, and --rdzv-backend or --rdzv-endpoint: which of them?";
        return {};
    }
    if (options.standalone) return {};
    const bool is_static = backend_ == "static" || (backend_.empty() && !options.master_address.empty());
    if (is_static) {
        if (options.max_nodes == 1) return {};
        options.rdzv = "static:";
    } else if (endpoint_.empty()) {
        if (!backend_.empty() && options.max_nodes > 1)
            return "--rdzv-backend " + backend_ + ": --rdzv-endpoint is missing";
        return {};
    } else if (backend_ == "c10d" || backend_ == "muster" || backend_.empty()) {
        options.rdzv = "tcp://" + endpoint_ + (endpoint_.find(':') == endpoint_.npos ? default_port : "");
    } else if (backend_ == "etcd" || backend_ == "etcd-v2") {
        options.rdzv = "etcd://" + endpoint_;
    } else {
        return "--rdzv-backend " + backend_ + " is none of c10d, static, etcd, muster";
    }
    if (options.run_id.empty()) options.run_id = default_run;
    return {};
}

// A module, or a file of Python that is no program by itself, is run by Python: PYTHON_EXEC, as with torchrun.
void Torchrun::apply_python(Options &options) const {
    std::vector<std::string> &program = options.program;
    if (program.empty() || no_python_) return;
    const bool is_file = run_path_ || (program.front().ends_with(".py") && access(program.front().c_str(), X_OK) != 0);
    if (!is_module_ && !is_file) return;
    const char *const named = getenv("PYTHON_EXEC");
    std::vector<std::string> python = {named != nullptr && *named != '\0' ? named : "python3", "-u"};
    if (is_module_) python.push_back("-m");
    program.insert(program.begin(), python.begin(), python.end());
    // Otherwise each worker would use all processors.
    if (options.workers > 1) setenv("OMP_NUM_THREADS", "1", 0);
}

} // namespace run
