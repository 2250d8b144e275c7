// libidn2: international host names (IDNA2008, UTS #46).
#ifndef NETWATCH_CIDN2_SHIM_H
#define NETWATCH_CIDN2_SHIM_H

#include <idn2.h>

#endif
