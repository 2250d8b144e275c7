#ifndef NETWATCH_CTLSREADING_H
#define NETWATCH_CTLSREADING_H

#include <openssl/ssl.h>

// Included here too, so that a build folder of an earlier version notices the new header.
#include "cost.h"

// Limits how long a connection of this context may keep its reader busy without progress; see reading.c.
void netwatch_tls_limit_reading(SSL_CTX *context);

// Called before and after a call into libcurl that may read connections, on the calling thread.
void netwatch_tls_reading_begins(void);
void netwatch_tls_reading_ends(void);

// Called when libcurl has delivered data that it read.
void netwatch_tls_note_progress(void);

#endif
