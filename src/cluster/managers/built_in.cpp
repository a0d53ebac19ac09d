// SPDX-License-Identifier: MIT
#include "cluster/managers/manager.hpp"

namespace muster {

MakeManager find_built_in_manager(std::string_view name) noexcept {
    constexpr struct {
        std::string_view name;
        MakeManager make;
    } all[] = {{"local", &make_local_manager}, {"ssh", &make_ssh_manager},         {"mpi", &make_mpi_manager},
               {"slurm", &make_slurm_manager}, {"command", &make_command_manager}, {"elastic", &make_elastic_manager}};
    for (const auto &one : all)
        if (one.name == name) return one.make;
    return nullptr;
}

} // namespace muster
