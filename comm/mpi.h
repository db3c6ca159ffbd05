#pragma once

// The C interface only: Open MPI's C++ classes left the standard with MPI 3.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

namespace octavo {

/// @throws DeviceError "doing: what MPI says" unless status is MPI_SUCCESS.
void check_mpi(int status, const char* doing);

}  // namespace octavo
