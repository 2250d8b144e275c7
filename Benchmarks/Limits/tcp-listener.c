// A server for connections: it accepts each one and closes it at once.
//
//     tcp-listener PORT
//
// Listens on all IPv4 addresses, prints "ready", and ends with a signal.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2 || atoi(argv[1]) < 1) {
        fprintf(stderr, "usage: tcp-listener PORT\n");
        return 64;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    int yes = 1, server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (server < 0 || bind(server, (struct sockaddr *)&address, sizeof address) != 0 || listen(server, 4096) != 0) {
        fprintf(stderr, "tcp-listener: %s\n", strerror(errno));
        return 71;
    }
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        int connection = accept(server, NULL, NULL);
        if (connection >= 0) close(connection);
    }
}
