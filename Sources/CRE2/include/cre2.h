// RE2 for Swift: expressions that are matched in time linear in the text. C++ exceptions do not leave these functions.
#ifndef NETWATCH_CRE2_H
#define NETWATCH_CRE2_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct netwatch_expression netwatch_expression;

// Compiles an expression of `count` bytes in UTF-8, with at most `memory` bytes. Returns NULL for an invalid one, and writes the reason,
// at most `size` bytes with the final NUL, to `error`. Free it with netwatch_expression_free.
netwatch_expression *netwatch_expression_new(const char *pattern, size_t count, long memory, char *error, size_t size);

// Returns 1 if the text contains a match, else 0. Safe on several threads at a time.
int netwatch_expression_matches(const netwatch_expression *expression, const char *text, size_t count);

void netwatch_expression_free(netwatch_expression *expression);

#ifdef __cplusplus
}
#endif

#endif
