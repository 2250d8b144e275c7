#ifndef NETWATCH_CTLSREADING_H
#define NETWATCH_CTLSREADING_H

#include <openssl/ssl.h>

// Connections of this context end when they keep their reader busy with nothing; reading.c says how and why.
void netwatch_tls_limit_reading(SSL_CTX *context);

// The calling thread enters libcurl, which may read connections; and it has returned.
void netwatch_tls_reading_begins(void);
void netwatch_tls_reading_ends(void);

// Something that was read has come out of libcurl.
void netwatch_tls_note_progress(void);

#endif
