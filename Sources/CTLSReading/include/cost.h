#ifndef NETWATCH_CTLSREADING_COST_H
#define NETWATCH_CTLSREADING_COST_H

#include <openssl/ssl.h>

enum {
    // The longest Certificate message in bytes. Chains of public authorities have 3 to 8 KiB.
    netwatch_tls_maximum_certificate_bytes = 32 * 1024,
    // The largest Diffie-Hellman group over a prime field, in bits.
    netwatch_tls_maximum_group_bits = 4096,
};

// Limits what a server, which has proved nothing yet, can make clients of this context compute; see cost.c.
void netwatch_tls_limit_cost(SSL_CTX *context);

// Returns the bits of the Diffie-Hellman group that the calling thread has refused last, and forgets them; 0 if there is none.
int netwatch_tls_take_refused_group(void);

#endif
