// OpenSSL 3.0 or newer. Each macro that Swift does not import has its own function here.
#ifndef NETWATCH_COPENSSL_SHIM_H
#define NETWATCH_COPENSSL_SHIM_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

static inline int netwatch_ssl_ctx_set_versions(SSL_CTX *context, int minimum, int maximum) {
    return SSL_CTX_set_min_proto_version(context, minimum) && SSL_CTX_set_max_proto_version(context, maximum);
}
static inline long netwatch_ssl_ctx_maximum_version(SSL_CTX *context) { return SSL_CTX_get_max_proto_version(context); }

// Swift cannot pass NULL for the two other function types; they are never used.
static inline int netwatch_ssl_ctx_new_index(CRYPTO_EX_free *release) {
    return SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, release);
}

static inline int netwatch_ssl_new_index(void) { return SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL); }

// No resumed sessions, and no buffers of idle connections: probes make one full handshake each.
static inline void netwatch_ssl_ctx_prepare_probes(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE);
}
static inline long netwatch_ssl_set_server_name(SSL *ssl, const char *name) { return SSL_set_tlsext_host_name(ssl, name); }

// The bytes of a DNS name or an address among the subject alternative names; NULL for other kinds.
static inline const unsigned char *netwatch_general_name(const void *name, int *kind, int *count) {
    const ASN1_STRING *value = GENERAL_NAME_get0_value((const GENERAL_NAME *)name, kind);
    if (!value || (*kind != GEN_DNS && *kind != GEN_IPADD)) return NULL;
    *count = ASN1_STRING_length(value);
    return ASN1_STRING_get0_data(value);
}
static inline void netwatch_general_names_free(void *names) { GENERAL_NAMES_free((GENERAL_NAMES *)names); }

// Prints a name on one line (RFC 2253), with characters beyond ASCII as UTF-8. The flags are macro expressions.
static inline int netwatch_print_name(BIO *out, const X509_NAME *name) {
    return X509_NAME_print_ex(out, name, 0, (XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) | ASN1_STRFLGS_UTF8_CONVERT);
}

#endif
