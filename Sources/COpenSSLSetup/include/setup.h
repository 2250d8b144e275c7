#ifndef NETWATCH_COPENSSL_SETUP_H
#define NETWATCH_COPENSSL_SETUP_H

#include <openssl/ssl.h>

// setup.c has nothing to call: it runs before main.

// The limit of stall.c for a connection of this context.
void netwatch_tls_limit_reading(SSL_CTX *context);

// The calling thread enters libcurl, which may read connections; and it has returned.
void netwatch_tls_reading_begins(void);
void netwatch_tls_reading_ends(void);

// Something that was read has come out of libcurl.
void netwatch_tls_note_progress(void);

#endif
