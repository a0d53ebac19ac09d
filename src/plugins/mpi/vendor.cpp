// SPDX-License-Identifier: MIT
#include "vendor.hpp"

#include "error.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <memory>
#include <mpi.h>

namespace mpi {

namespace {

#ifdef OPEN_MPI
constexpr bool open_mpi = true;
constexpr const char *own_name = "Open MPI", *other_name = "MPICH";
#else
constexpr bool open_mpi = false;
constexpr const char *own_name = "MPICH", *other_name = "Open MPI";
#endif

// MPICH's family shares one binary interface; its libraries are libmpich.so and libmpi.so.12.
bool of_mpich(const char *file) {
    return strncmp(file, "libmpich.so", 11) == 0 || strcmp(file, "libmpi.so.12") == 0;
}
constexpr const char *single_copy = "OMPI_MCA_btl_vader_single_copy_mechanism";

bool of_open_mpi(const char *file) {
    return strncmp(file, "libmpi.so.", 10) == 0 && !of_mpich(file);
}

struct Found {
    char path[512];
};

int look_at_library(dl_phdr_info *info, size_t, void *found) {
    const char *slash = strrchr(info->dlpi_name, '/'), *file = slash != nullptr ? slash + 1 : info->dlpi_name;
    if (!(open_mpi ? of_mpich(file) : of_open_mpi(file))) return 0;
    strncpy(static_cast<Found *>(found)->path, info->dlpi_name, sizeof Found::path - 1);
    return 1;
}

// A library of the other family that the process has loaded and initialised: then this one would be a second MPI.
muster_status look_for_the_other(muster_error *error) {
    Found found{};
    if (dl_iterate_phdr(look_at_library, &found) == 0) return MUSTER_OK;
    void *library = dlopen(found.path, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return MUSTER_OK;
    using Request = int (*)(int *);
    const auto initialized = reinterpret_cast<Request>(dlsym(library, "MPI_Initialized"));
    int flag = 0;
    const bool in_use = initialized != nullptr && initialized(&flag) == 0 && flag != 0;
    dlclose(library);
    if (!in_use) return MUSTER_OK;
    return refuse(error, MUSTER_E_UNSUPPORTED,
                  "the host has initialised %s (%s), and this muster-mpi.so was built with %s; "
                  "use one that was built with the host's",
                  other_name, found.path, own_name);
}

bool has(const char *name) {
    return getenv(name) != nullptr;
}

// Outside a job MPI_Init makes a job of one rank: half a second, a daemon, and no peer.
muster_status look_at_launcher(muster_error *error) {
    const bool by_open_mpi = has("OMPI_COMM_WORLD_SIZE") || has("PMIX_NAMESPACE");
    const bool by_pmi = has("PMI_RANK") || has("PMI_FD") || has("PMI_PORT");
    [[maybe_unused]] const bool by_slurm = by_pmi && (has("SLURM_STEP_ID") || has("SLURM_STEPID"));
    if (open_mpi ? by_open_mpi || by_slurm : by_pmi && !has("OMPI_COMM_WORLD_SIZE")) return MUSTER_OK;
    if (open_mpi ? by_pmi : by_open_mpi)
        return refuse(error, MUSTER_E_UNSUPPORTED,
                      "this process was started by the mpiexec of %s, and this muster-mpi.so was built with %s: "
                      "each rank would be a job of its own",
                      other_name, own_name);
    return refuse(error, MUSTER_E_UNSUPPORTED,
                  "this process is not in an MPI job: start it with the mpirun of %s, or initialise MPI before",
                  own_name);
}

} // namespace

muster_status check_mpi(bool &out_initialised, muster_error *error) {
    // If the host is linked with the other family, calls of the plug-in end up there, with another idea of what a
    // communicator is. This call is the same in all families.
    struct Text {
        char bytes[16 * 1024];
    };
    const auto text = std::make_unique<Text>();
    int length = 0;
    MPI_Get_library_version(text->bytes, &length);
    const bool is_open_mpi = strncmp(text->bytes, "Open MPI", 8) == 0;
    if (is_open_mpi != open_mpi) {
        Dl_info name{};
        dladdr(reinterpret_cast<void *>(&MPI_Init_thread), &name);
        return refuse(error, MUSTER_E_UNSUPPORTED, "the host uses %s (%s), and this muster-mpi.so was built with %s",
                      is_open_mpi ? "Open MPI" : "an MPI of MPICH's kind",
                      name.dli_fname != nullptr ? name.dli_fname : "linked in", own_name);
    }
    if (const muster_status status = look_for_the_other(error); status != MUSTER_OK) return status;
    int initialised = 0, finalised = 0;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (finalised) return refuse(error, MUSTER_E_CLOSED, "MPI is finalised in this process; it cannot begin again");
    out_initialised = initialised != 0;
    return initialised ? MUSTER_OK : look_at_launcher(error);
}

bool job_survives_deaths() {
    const char *value = getenv("OMPI_MCA_orte_enable_recovery");
    return value != nullptr && strcmp(value, "0") != 0;
}

namespace {

// Set for a while: MPI reads it, children of the host do not.
class Setting {
  public:
    Setting(const char *name, const char *value) : name_(name), mine_(getenv(name) == nullptr) {
        if (mine_) setenv(name, value, 0);
    }
    ~Setting() {
        if (mine_) unsetenv(name_);
    }
    Setting(const Setting &) = delete;
    Setting &operator=(const Setting &) = delete;

  private:
    const char *name_;
    bool mine_;
};

// Open MPI and UCX install handlers for SIGSEGV, which the runtime of the host may need itself. One handler stays if
// the host has none: that of MPICH for SIGUSR1, by which its mpiexec reports the death of a rank under
// -disable-auto-cleanup (4.0 does), and which would end the process otherwise.
class Dispositions {
  public:
    Dispositions() {
        for (int number = 1; number < NSIG; number++)
            known_[number] = sigaction(number, nullptr, &before_[number]) == 0;
    }
    ~Dispositions() {
        for (int number = 1; number < NSIG; number++) {
            struct sigaction now {};
            if (!open_mpi && number == SIGUSR1 && before_[number].sa_handler == SIG_DFL) continue;
            if (known_[number] && sigaction(number, nullptr, &now) == 0 &&
                (now.sa_handler != before_[number].sa_handler || now.sa_flags != before_[number].sa_flags))
                sigaction(number, &before_[number], nullptr);
        }
    }
    Dispositions(const Dispositions &) = delete;
    Dispositions &operator=(const Dispositions &) = delete;

  private:
    struct sigaction before_[NSIG] {};
    bool known_[NSIG] = {};
};

} // namespace

namespace {
bool is_loaded(const char *library) {
    void *found = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (found != nullptr) dlclose(found);
    return found != nullptr;
}
} // namespace

bool copies_through_pages() {
    [[maybe_unused]] const char *value = getenv(single_copy);
    return open_mpi && (value == nullptr || strcmp(value, "none") == 0);
}

muster_status initialise(int &out_level, muster_error *error) {
    // Open MPI loads components that need its symbols globally; versions before 3 leave that to their users.
    Dl_info name{};
    if (dladdr(reinterpret_cast<void *>(&MPI_Init_thread), &name) != 0 && name.dli_fname != nullptr)
        (void)dlopen(name.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD | RTLD_NODELETE); // it stays open
    const bool has_ucx = is_loaded("libucs.so.0");                                          // with libmpich.so
    const Dispositions dispositions;
    const Setting opal("OMPI_MCA_opal_signal", "");
    // Once UCX is loaded it has read that, and complains about the name.
    const Setting ucx(has_ucx ? "UCX_WARN_UNUSED_ENV_VARS" : "UCX_ERROR_SIGNALS", has_ucx ? "n" : "");
    // Copies through shared pages instead of process_vm_readv: no process reads the memory of a process that may be
    // dying, and 80 MB took two thirds of the time.
    const Setting copies(single_copy, "none");
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &out_level);
    if (code != MPI_SUCCESS)
        return refuse(error, MUSTER_E_SYSTEM, "MPI_Init_thread failed: %.150s", mpi_text(code).c_str());
    return MUSTER_OK;
}

} // namespace mpi
