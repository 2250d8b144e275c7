// The limit of an HTTP client on libcurl: COUNT requests to URL, CONCURRENCY at a time, on one thread with epoll and
// curl_multi_socket_action, nothing kept but the number of bytes. Prints "requests/s CPU-seconds bytes".
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

static int epoll_fd;
static long timeout_ms = -1;
static long long received;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
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

static void start(CURLM *multi, CURL *easy, const char *url) {
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_multi_add_handle(multi, easy);
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "usage: http-multi URL COUNT CONCURRENCY\n"), 64;
    long count = atol(argv[2]), concurrency = atol(argv[3]), started = 0, done = 0;
    epoll_fd = epoll_create1(0);
    CURLM *multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, concurrency);
    double begin = seconds();
    for (; started < concurrency && started < count; started++) start(multi, curl_easy_init(), argv[1]);
    int running = 0;
    while (done < count) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll_fd, events, 64, (int)timeout_ms);
        if (ready == 0 || timeout_ms == 0) {
            timeout_ms = -1;
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        for (int index = 0; index < ready; index++) {
            int mask = (events[index].events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events[index].events & EPOLLOUT ? CURL_CSELECT_OUT : 0);
            curl_multi_socket_action(multi, events[index].data.fd, mask, &running);
        }
        CURLMsg *message;
        int left;
        while ((message = curl_multi_info_read(multi, &left))) {
            if (message->msg != CURLMSG_DONE) continue;
            if (message->data.result != CURLE_OK) return fprintf(stderr, "%s\n", curl_easy_strerror(message->data.result)), 1;
            done++;
            CURL *easy = message->easy_handle;
            curl_multi_remove_handle(multi, easy);
            if (started < count) {
                started++;
                start(multi, easy, argv[1]);
            } else {
                curl_easy_cleanup(easy);
            }
        }
    }
    double elapsed = seconds() - begin;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%.0f %.3f %lld\n", done / elapsed,
           usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6, received);
    return 0;
}
