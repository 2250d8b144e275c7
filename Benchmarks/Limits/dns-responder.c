// The name server of the measurement of names: answers every A question with 127.0.0.1, and every other question with no record.
//
//     dns-responder
//
// Listens on 127.0.0.1, port 53, of the current network namespace, over UDP, and prints "ready". The TTL is 60 seconds. It ends
// with a signal.
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int fail(const char *what) {
    fprintf(stderr, "dns-responder: %s: %s\n", what, strerror(errno));
    return 71;
}

int main(void) {
    static const uint8_t record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = 1 << 20;
    if (server < 0) return fail("socket");
    setsockopt(server, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (bind(server, (struct sockaddr *)&own, sizeof own) != 0) return fail("bind");
    puts("ready");
    fflush(stdout);
    for (;;) {
        uint8_t message[512 + sizeof record];
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        ssize_t count = recvfrom(server, message, 512, 0, (struct sockaddr *)&peer, &length);
        if (count < 17) continue;
        ssize_t end = 12;
        while (end < count && message[end] != 0) end += message[end] + 1;
        if ((end += 5) > count) continue;
        int is_address = message[end - 3] == 1;
        // QR, RD and RA; the counts of one question and of the answers.
        message[2] = 0x81;
        message[3] = 0x80;
        memset(message + 4, 0, 8);
        message[5] = 1;
        message[7] = (uint8_t)is_address;
        if (is_address) memcpy(message + end, record, sizeof record);
        sendto(server, message, (size_t)end + (is_address ? sizeof record : 0), 0, (struct sockaddr *)&peer, length);
    }
}
