#include "CProcess.h"

#include <stddef.h>
#include <sys/auxv.h>

static int count;
static char *const *values;

// glibc calls constructors with the arguments of main, in programs and in shared libraries. Other C libraries pass nothing.
#ifdef __GLIBC__
__attribute__((constructor)) static void keep_arguments(int argc, char **argv, char **environment) {
    (void)environment;
    count = argc;
    values = argv;
}
#endif

int netwatch_argument_count(void) { return count; }

char *const *netwatch_arguments(void) { return values; }

const char *netwatch_executed_path(void) { return (const char *)getauxval(AT_EXECFN); }
