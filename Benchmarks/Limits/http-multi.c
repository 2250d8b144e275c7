// The limit of an HTTP client on libcurl: COUNT requests to URL, CONCURRENCY at a time, on one thread. It keeps the number of
// bytes only. A URL of https is followed by AUTHORITY, the file of a certificate to trust; the server chooses HTTP/1.1 or HTTP/2.
// BESIDE-COUNT transfers of BESIDE, which do not end meanwhile, are in the same multi handle. The program uses epoll and
// curl_multi_socket_action, or with the argument "poll" curl_multi_poll and curl_multi_perform. It prints "requests/s CPU-seconds
// bytes KiB KiB"; the last two are the resident memory before and with the transfers of BESIDE.
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

static int epoll_fd;
static int uses_poll;
static long timeout_ms = -1;
static long long received;
static char beside;
static const char *authority;

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static long resident(void) {
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kibibytes = 0;
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld", &kibibytes);
    if (status) fclose(status);
    return kibibytes;
}

static size_t keep(char *bytes, size_t size, size_t count, void *context) {
    (void)bytes;
    (void)context;
    received += (long long)(size * count);
    return size * count;
}

static int watch(CURL *easy, curl_socket_t fd, int what, void *context, void *known) {
    (void)easy;
    struct epoll_event event = {.data.fd = fd};
    if (what == CURL_POLL_REMOVE) return epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, &event), 0;
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    epoll_ctl(epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    if (!known) curl_multi_assign((CURLM *)context, fd, &epoll_fd);
    return 0;
}

static int timer(CURLM *multi, long milliseconds, void *context) {
    (void)multi;
    (void)context;
    timeout_ms = milliseconds;
    return 0;
}

static void start(CURLM *multi, CURL *easy, const char *url, void *mark) {
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, mark);
    if (authority) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, authority);
        // Without it, a request opens a connection instead of a stream while the only one is being set up.
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    }
    curl_multi_add_handle(multi, easy);
}

// Runs one turn of the loop, which waits no longer than at_most_ms.
static void turn(CURLM *multi, int at_most_ms) {
    int running = 0;
    if (uses_poll) {
        curl_multi_poll(multi, NULL, 0, at_most_ms, NULL);
        curl_multi_perform(multi, &running);
        return;
    }
    struct epoll_event events[64];
    int wait = timeout_ms < 0 || timeout_ms > at_most_ms ? at_most_ms : (int)timeout_ms;
    int ready = epoll_wait(epoll_fd, events, 64, wait);
    if (ready == 0 || timeout_ms == 0) {
        timeout_ms = -1;
        curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    for (int index = 0; index < ready; index++) {
        int mask = (events[index].events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events[index].events & EPOLLOUT ? CURL_CSELECT_OUT : 0);
        curl_multi_socket_action(multi, events[index].data.fd, mask, &running);
    }
}

// Returns the next transfer that has ended. The program exits if it failed, or if it is one of BESIDE.
static CURL *ended(CURLM *multi) {
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        char *mark = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &mark);
        if (message->data.result != CURLE_OK || mark == &beside) {
            fprintf(stderr, "http-multi: %s\n", mark == &beside ? "a transfer beside has ended" : curl_easy_strerror(message->data.result));
            exit(1);
        }
        CURL *easy = message->easy_handle;
        curl_multi_remove_handle(multi, easy);
        return easy;
    }
    return NULL;
}

// Makes count requests, concurrency at a time.
static void run(CURLM *multi, const char *url, long count, long concurrency) {
    long started = 0, done = 0;
    CURL *easy;
    for (; started < concurrency && started < count; started++) start(multi, curl_easy_init(), url, NULL);
    while (done < count) {
        turn(multi, 10000);
        while ((easy = ended(multi))) {
            done++;
            if (started < count) {
                started++;
                start(multi, easy, url, NULL);
            } else {
                curl_easy_cleanup(easy);
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "usage: http-multi URL COUNT CONCURRENCY [AUTHORITY | BESIDE BESIDE-COUNT [poll]]\n"), 64;
    long count = atol(argv[2]), concurrency = atol(argv[3]);
    long beside_count = argc > 5 ? atol(argv[5]) : 0;
    uses_poll = argc > 6 && strcmp(argv[6], "poll") == 0;
    if (strncmp(argv[1], "https:", 6) == 0 && argc > 4) authority = argv[4];
    epoll_fd = epoll_create1(0);
    CURLM *multi = curl_multi_init();
    if (!uses_poll) {
        curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
        curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
        curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
    }
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, concurrency + beside_count);

    // The first request loads its libraries and buffers before memory is read.
    run(multi, argv[1], 1, 1);
    // Over TLS, as many requests as at a time then open the connections, so that no handshake is measured.
    if (authority) run(multi, argv[1], concurrency, concurrency);
    long before = resident();
    for (long number = 0; number < beside_count; number++) start(multi, curl_easy_init(), argv[4], &beside);
    // Until they are connected, have sent their requests and have received the beginnings of their responses.
    for (double end = seconds(CLOCK_MONOTONIC) + 2; beside_count > 0 && seconds(CLOCK_MONOTONIC) < end;) turn(multi, 100);
    long with = resident();

    received = 0;
    double begin = seconds(CLOCK_MONOTONIC), processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
    run(multi, argv[1], count, concurrency);
    double elapsed = seconds(CLOCK_MONOTONIC) - begin;
    printf("%.0f %.3f %lld %ld %ld\n", count / elapsed, seconds(CLOCK_PROCESS_CPUTIME_ID) - processor, received, before, with);
    return 0;
}
