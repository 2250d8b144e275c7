// zlib: the codings gzip and deflate of HTTP content (RFC 1950, RFC 1951, RFC 1952).
#ifndef NETWATCH_CZLIB_SHIM_H
#define NETWATCH_CZLIB_SHIM_H

#include <zlib.h>

#endif
