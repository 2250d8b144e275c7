#define _POSIX_C_SOURCE 200809L
#include "reading.h"
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

// libcurl reads an HTTP/2 connection until it has bytes for its caller, or until no more bytes are available (7.88,
// lib/http2.c). A server that sends empty DATA frames as fast as they are read keeps libcurl in one call forever: timeouts,
// cancellation and the thread's other transfers do not run (the class of CVE-2019-9518). After one second of the thread's
// processor time, such a connection ends as if its server had closed it. Needed until libcurl limits this itself.

enum { records_between_checks = 256, limit_milliseconds = 1000 };

static _Thread_local bool is_reading;
static _Thread_local uint32_t records;
static _Thread_local int64_t first_check;

static int64_t processor_milliseconds(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// SSL_CTX_set_msg_callback(3): called with the header of each record that is read. Progress follows almost every record of a
// download, so the clock is rarely read.
static void message(int is_written, int version, int type, const void *bytes, size_t count, SSL *ssl, void *argument) {
    (void)version, (void)bytes, (void)count, (void)argument;
    if (is_written || type != SSL3_RT_HEADER || !is_reading) return;
    if (++records % records_between_checks != 0) return;
    int64_t now = processor_milliseconds();
    if (records == records_between_checks) first_check = now;
    if (now - first_check > limit_milliseconds) SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

void netwatch_tls_limit_reading(SSL_CTX *context) { SSL_CTX_set_msg_callback(context, message); }

void netwatch_tls_note_progress(void) { records = 0; }

void netwatch_tls_reading_begins(void) {
    records = 0;
    is_reading = true;
}

void netwatch_tls_reading_ends(void) { is_reading = false; }
