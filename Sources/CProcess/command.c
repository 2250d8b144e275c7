// The start of a command beside this program, with the signals and descriptors that this program was started with.
#define _GNU_SOURCE
#include "CProcess.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

// Returns the first file in PATH that can be executed, to be freed, or NULL. posix_spawnp(3) does not say which one it has found.
static char *searched(const char *name) {
    if (strchr(name, '/')) return strdup(name);
    const char *path = getenv("PATH");
    if (!path) path = "/bin:/usr/bin";
    size_t length = strlen(name);
    for (const char *end; ; path = end + 1) {
        end = strchrnul(path, ':');
        size_t folder = (size_t)(end - path);
        char *file = malloc(folder + length + 3);
        if (!file) return NULL;
        // An empty entry is the working directory.
        memcpy(file, folder ? path : ".", folder ? folder : 1);
        size_t at = folder ? folder : 1;
        file[at] = '/';
        memcpy(file + at + 1, name, length + 1);
        struct stat found;
        if (stat(file, &found) == 0 && S_ISREG(found.st_mode) && access(file, X_OK) == 0) return file;
        free(file);
        if (!*end) return NULL;
    }
}

// execvp(3) runs a file without #! by the shell; posix_spawnp(3) does not.
static int spawn_script(
    pid_t *process, char *const *arguments, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes) {
    size_t count = 0;
    while (arguments[count]) count++;
    char *file = searched(arguments[0]);
    char **shell = malloc((count + 2) * sizeof *shell);
    int failure = ENOMEM;
    if (!file) failure = ENOENT;
    if (file && shell) {
        shell[0] = (char *)"sh";
        shell[1] = file;
        // With the NULL at the end.
        memcpy(shell + 2, arguments + 1, count * sizeof *shell);
        failure = posix_spawn(process, "/bin/sh", actions, attributes, shell, environ);
    }
    free(shell);
    free(file);
    return failure;
}

int netwatch_spawn_command(
    int32_t *process, char *const *arguments, int output, int errors, const sigset_t *blocked, int ignores_pipe_signal) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    pid_t child = 0;
    sigemptyset(&defaults);
    if (!ignores_pipe_signal) sigaddset(&defaults, SIGPIPE);
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure) return failure;
    if ((failure = posix_spawnattr_init(&attributes))) {
        posix_spawn_file_actions_destroy(&actions);
        return failure;
    }
    if (!(failure = output < 0 ? 0 : posix_spawn_file_actions_adddup2(&actions, output, 1)) &&
        !(failure = errors < 0 ? 0 : posix_spawn_file_actions_adddup2(&actions, errors, 2)) &&
        !(failure = posix_spawnattr_setsigmask(&attributes, blocked)) &&
        !(failure = posix_spawnattr_setsigdefault(&attributes, &defaults)) &&
        !(failure = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))) {
        // The command inherits ignored signals, but not the handlers that have replaced them.
        netwatch_restore_ignored_crashes();
        failure = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments, environ);
        if (failure == ENOEXEC) failure = spawn_script(&child, arguments, &actions, &attributes);
        netwatch_report_crashes();
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    *process = child;
    return failure;
}

int netwatch_next_signal(int descriptor, int *is_of_kernel) {
    struct signalfd_siginfo info;
    if (read(descriptor, &info, sizeof info) != (ssize_t)sizeof info) return 0;
    // The terminal has sent it to all processes of its foreground group.
    *is_of_kernel = info.ssi_code == SI_KERNEL;
    return (int)info.ssi_signo;
}
