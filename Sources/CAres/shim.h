// c-ares: asynchronous DNS queries. The only importer is Reachability/Probe.
#ifndef NETWATCH_CARES_SHIM_H
#define NETWATCH_CARES_SHIM_H

// The system structures are those of the Glibc module. If this module had definitions of its own, they would hide those of Glibc
// in files that import only Glibc.
#pragma clang module import SwiftGlibc

#include <ares.h>

#endif
