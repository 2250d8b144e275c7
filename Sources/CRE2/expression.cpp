#include "CRE2.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

// Swift cannot catch exceptions of C++, so no function here lets one escape. RE2 throws none of its own; its containers throw if
// memory is exhausted.

struct netwatch_expression {
    re2::RE2 compiled;

    netwatch_expression(re2::StringPiece text, const re2::RE2::Options &options) : compiled(text, options) {}
};

static void write_text(const char *text, char *buffer, size_t buffer_size) {
    if (buffer_size == 0) return;
    size_t size = strnlen(text, buffer_size - 1);
    memcpy(buffer, text, size);
    buffer[size] = 0;
}

extern "C" netwatch_expression *netwatch_expression_create(
    const uint8_t *text, size_t size, int64_t memory, int captures, char *error, size_t error_size) {
    try {
        // RE2's own defaults: UTF-8, and `.` matches no line end. Errors go to the caller only.
        re2::RE2::Options options;
        options.set_log_errors(false);
        options.set_max_mem(memory);
        // A match that does not report its groups needs no capture registers.
        options.set_never_capture(!captures);
        re2::StringPiece piece(reinterpret_cast<const char *>(text), size);
        auto expression = std::make_unique<netwatch_expression>(piece, options);
        if (expression->compiled.ok()) return expression.release();
        write_text(expression->compiled.error().c_str(), error, error_size);
    } catch (...) {
        write_text("out of memory", error, error_size);
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

extern "C" size_t netwatch_expression_group_count(const netwatch_expression *expression) {
    return static_cast<size_t>(std::max(0, expression->compiled.NumberOfCapturingGroups()));
}

extern "C" void netwatch_expression_group_name(
    const netwatch_expression *expression, size_t number, char *name, size_t size) {
    if (size == 0) return;
    name[0] = 0;
    try {
        const auto &names = expression->compiled.CapturingGroupNames();
        auto found = names.find(static_cast<int>(number));
        if (found != names.end()) write_text(found->second.c_str(), name, size);
    } catch (...) {
        name[0] = 0;
    }
}

extern "C" int netwatch_expression_capture(
    const netwatch_expression *expression, const uint8_t *bytes, size_t size, size_t *starts, size_t *sizes, size_t count) {
    try {
        re2::StringPiece text(reinterpret_cast<const char *>(bytes), size);
        std::vector<re2::StringPiece> groups(count + 1);
        if (!expression->compiled.Match(text, 0, size, re2::RE2::UNANCHORED, groups.data(), static_cast<int>(groups.size())))
            return 0;
        for (size_t index = 0; index < count; index++) {
            const auto &group = groups[index + 1];
            starts[index] = group.data() == nullptr ? 0 : static_cast<size_t>(group.data() - text.data());
            sizes[index] = group.data() == nullptr ? 0 : group.size();
        }
        return 1;
    } catch (...) {
        return -1;
    }
}

extern "C" void netwatch_expression_destroy(netwatch_expression *expression) { delete expression; }
