#include "cre2.h"

#include <cstdio>
#include <new>
#include <re2/re2.h>

struct netwatch_expression {
    re2::RE2 expression;
    netwatch_expression(const re2::StringPiece &pattern, const re2::RE2::Options &options) : expression(pattern, options) {}
};

extern "C" netwatch_expression *netwatch_expression_new(
    const char *pattern, size_t count, long memory, char *error, size_t size) {
    try {
        re2::RE2::Options options;
        options.set_log_errors(false);
        options.set_max_mem(memory);
        options.set_never_capture(true);
        netwatch_expression *made = new netwatch_expression(re2::StringPiece(pattern, count), options);
        if (made->expression.ok()) return made;
        snprintf(error, size, "%s", made->expression.error().c_str());
        delete made;
    } catch (...) {
        snprintf(error, size, "no memory");
    }
    return nullptr;
}

extern "C" int netwatch_expression_matches(const netwatch_expression *expression, const char *text, size_t count) {
    try {
        return re2::RE2::PartialMatch(re2::StringPiece(text, count), expression->expression);
    } catch (...) {
        return 0;
    }
}

extern "C" void netwatch_expression_free(netwatch_expression *expression) { delete expression; }
