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
// expression, and writes the reason with a final NUL into `error`, shortened to `error_size` bytes. Only an expression that captures has groups.
netwatch_expression *netwatch_expression_create(
    const uint8_t *text, size_t size, int64_t memory, int captures, char *error, size_t error_size);

// Searches for the expression anywhere in the bytes. Returns 1 if it is found, 0 if not, -1 if the memory of the process is
// exhausted.
int netwatch_expression_search(const netwatch_expression *expression, const uint8_t *bytes, size_t size);

// The number of groups that the expression captures.
size_t netwatch_expression_group_count(const netwatch_expression *expression);

// Writes the name of a group, counted from 1, with a final NUL into `name`, shortened to `size` bytes; an empty text if it has none.
void netwatch_expression_group_name(const netwatch_expression *expression, size_t number, char *name, size_t size);

// Searches for the expression, and writes the first byte and the size of each group, counted from 1, into `starts` and `sizes`, which have `count`
// elements. A group that is not a part of the match has the size 0. Returns as netwatch_expression_search does.
int netwatch_expression_capture(
    const netwatch_expression *expression, const uint8_t *bytes, size_t size, size_t *starts, size_t *sizes, size_t count);

// Releases an expression, or does nothing for NULL.
void netwatch_expression_destroy(netwatch_expression *expression);

#ifdef __cplusplus
}
#endif

#endif
