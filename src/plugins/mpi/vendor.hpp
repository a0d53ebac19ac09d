// SPDX-License-Identifier: MIT
#pragma once
// Looked at before MPI is touched: which MPI this file was built with, which one the process has, and who has started
// the process. The two families, Open MPI and MPICH, are not compatible, and MPI ends the process where it is confused.
#include <muster/plugin.h>

namespace mpi {

// MUSTER_OK: MPI functions may be called. *out_initialised: the host has initialised it already.
muster_status look_at_mpi(bool &out_initialised, muster_error *error);

// Some launcher has asked that the job goes on when a rank dies.
bool job_survives_deaths();

// Initialises MPI without leaving signal handlers behind; *out_level is what it provides.
muster_status initialise(int &out_level, muster_error *error);

} // namespace mpi
