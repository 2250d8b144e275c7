#include "CRE2.h"

#include <re2/re2.h>

#include <cstring>
#include <memory>
#include <string>

// Swift cannot catch exceptions of C++, so no function here lets one escape. RE2 throws none of its own; its containers throw if
// memory is exhausted.

struct netwatch_expression {
    re2::RE2 compiled;

    netwatch_expression(re2::StringPiece text, const re2::RE2::Options &options) : compiled(text, options) {}
};

static void write_error(const char *reason, char *error, size_t error_size) {
    if (error_size == 0) return;
    size_t size = strnlen(reason, error_size - 1);
    memcpy(error, reason, size);
    error[size] = 0;
}

extern "C" netwatch_expression *netwatch_expression_create(
    const uint8_t *text, size_t size, int64_t memory, char *error, size_t error_size) {
    try {
        // RE2's own defaults: UTF-8, and `.` matches no line end. Errors go to the caller only.
        re2::RE2::Options options;
        options.set_log_errors(false);
        options.set_max_mem(memory);
        // No match reports its groups, so groups need no capture registers.
        options.set_never_capture(true);
        re2::StringPiece piece(reinterpret_cast<const char *>(text), size);
        auto expression = std::make_unique<netwatch_expression>(piece, options);
        if (expression->compiled.ok()) return expression.release();
        write_error(expression->compiled.error().c_str(), error, error_size);
    } catch (...) {
        write_error("out of memory", error, error_size);
    }
    return nullptr;
}

extern "C" int netwatch_expression_search(const netwatch_expression *expression, const uint8_t *bytes, size_t size) {
    try {
        re2::StringPiece text(reinterpret_cast<const char *>(bytes), size);
        return expression->compiled.Match(text, 0, size, re2::RE2::UNANCHORED, nullptr, 0) ? 1 : 0;
    } catch (...) {
        return -1;
    }
}

extern "C" void netwatch_expression_destroy(netwatch_expression *expression) { delete expression; }
