#ifndef NETWATCH_CRE2_H
#define NETWATCH_CRE2_H

#include <stdint.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// A compiled expression of RE2. It does not change after its creation, so several threads may use it.
typedef struct netwatch_expression netwatch_expression;

// Compiles UTF-8 text. The program and the tables of its searches use at most `memory` bytes. Returns NULL for an invalid
// expression, and writes the reason with a final NUL into `error`, shortened to `error_size` bytes.
netwatch_expression *netwatch_expression_create(
    const uint8_t *text, size_t size, int64_t memory, char *error, size_t error_size);

// Searches for the expression anywhere in the bytes. Returns 1 if it is found, 0 if not, -1 if the memory of the process is
// exhausted.
int netwatch_expression_search(const netwatch_expression *expression, const uint8_t *bytes, size_t size);

// Releases an expression, or does nothing for NULL.
void netwatch_expression_destroy(netwatch_expression *expression);

#ifdef __cplusplus
}
#endif

#endif
