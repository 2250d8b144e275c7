#define _POSIX_C_SOURCE 200809L
#include "reading.h"
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

// libcurl reads an HTTP/2 connection until it has bytes for its caller, or until nothing more is there (7.88, lib/http2.c). A server that sends
// empty DATA frames as fast as they are read keeps it in one call for ever: no timeout, no cancellation and no other transfer of the thread
// has a turn (the class of CVE-2019-9518). Such a connection is ended, as if its server had closed it, after a second of the thread's processor
// time. Needed until libcurl limits this itself.

enum { records_between_looks = 256, limit_milliseconds = 1000 };

static _Thread_local bool is_reading;
static _Thread_local uint32_t records;
static _Thread_local int64_t first_look;

static int64_t processor_milliseconds(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// SSL_CTX_set_msg_callback(3): the header of each record that is read. Almost every record of a download is followed by progress, so that the clock
// is seldom asked.
static void message(int is_written, int version, int type, const void *bytes, size_t count, SSL *ssl, void *argument) {
    (void)version, (void)bytes, (void)count, (void)argument;
    if (is_written || type != SSL3_RT_HEADER || !is_reading) return;
    if (++records % records_between_looks != 0) return;
    int64_t now = processor_milliseconds();
    if (records == records_between_looks) first_look = now;
    if (now - first_look > limit_milliseconds) SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

void netwatch_tls_limit_reading(SSL_CTX *context) { SSL_CTX_set_msg_callback(context, message); }

void netwatch_tls_note_progress(void) { records = 0; }

void netwatch_tls_reading_begins(void) {
    records = 0;
    is_reading = true;
}

void netwatch_tls_reading_ends(void) { is_reading = false; }
