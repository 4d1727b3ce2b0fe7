// SPDX-License-Identifier: Apache-2.0

#include <nvml.h>

// The CPU time of readings in C, in nanoseconds each.
double floor_in_c(int with_processes, int with_all, int readings);
double floor_cpu(void);
