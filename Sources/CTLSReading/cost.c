#include "cost.h"

// A server chooses the group of a Diffie-Hellman exchange over a prime field (RFC 5246 section 7.4.3), and two exponentiations in it
// are the largest cost of a handshake. OpenSSL 3.0 accepts 10,000 bits. Measured (3.0.19): 30 ms with 4,096 bits, 230 ms with 8,192,
// and 870 ms with 10,000. OpenSSL asks its security callback about the group before it computes, and before it checks the signature.

static int (*standard)(const SSL *, const SSL_CTX *, int, int, int, void *, void *);
static _Thread_local int refused_bits;

// SSL_CTX_set_security_callback(3): returns 1 if the level of security allows it.
static int allows(const SSL *ssl, const SSL_CTX *context, int operation, int bits, int nid, void *other, void *argument) {
    if (operation == SSL_SECOP_TMP_DH && other != NULL && EVP_PKEY_get_bits(other) > netwatch_tls_maximum_group_bits) {
        refused_bits = EVP_PKEY_get_bits(other);
        return 0;
    }
    if ((operation & SSL_SECOP_OTHER_TYPE) == SSL_SECOP_OTHER_CURVE && other != NULL) {
        // The number of the group: ffdhe6144 is 0x0103, and ffdhe8192 is 0x0104 (RFC 7919). They are not offered.
        const unsigned char *group = other;
        if (group[0] == 1 && (group[1] == 3 || group[1] == 4)) return 0;
    }
    return __atomic_load_n(&standard, __ATOMIC_RELAXED)(ssl, context, operation, bits, nid, other, argument);
}

void netwatch_tls_limit_cost(SSL_CTX *context) {
    // All contexts have OpenSSL's own callback, so every thread stores the same value.
    int (*present)(const SSL *, const SSL_CTX *, int, int, int, void *, void *) = SSL_CTX_get_security_callback(context);
    if (present == allows) return;
    __atomic_store_n(&standard, present, __ATOMIC_RELAXED);
    SSL_CTX_set_security_callback(context, allows);
    SSL_CTX_set_max_cert_list(context, netwatch_tls_maximum_certificate_bytes);
}

int netwatch_tls_take_refused_group(void) {
    int bits = refused_bits;
    refused_bits = 0;
    return bits;
}
