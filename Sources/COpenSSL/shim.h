// OpenSSL 3.0 or newer. Each macro that Swift does not import has its own function here.
#ifndef NETWATCH_COPENSSL_SHIM_H
#define NETWATCH_COPENSSL_SHIM_H

#include <openssl/core_dispatch.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

static inline int netwatch_ssl_ctx_set_versions(SSL_CTX *context, int minimum, int maximum) {
    return SSL_CTX_set_min_proto_version(context, minimum) && SSL_CTX_set_max_proto_version(context, maximum);
}
static inline long netwatch_ssl_ctx_maximum_version(SSL_CTX *context) { return SSL_CTX_get_max_proto_version(context); }

// Without tickets, every handshake is a full one. Without renegotiation, a handshake happens once. The options are casts.
static inline void netwatch_ssl_ctx_allow_one_handshake(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
}
static inline long netwatch_ssl_set_server_name(SSL *ssl, const char *name) { return SSL_set_tlsext_host_name(ssl, name); }

// Asks servers for a stapled OCSP response in the hello (RFC 6066 section 8). OpenSSL calls the callback in each handshake, also without a response.
static inline long netwatch_ssl_ctx_request_status(SSL_CTX *context, int (*callback)(SSL *, void *)) {
    return SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp) && SSL_CTX_set_tlsext_status_cb(context, callback);
}
// Returns the number of bytes of the stapled response, which belong to the SSL; -1 without one.
static inline long netwatch_ssl_stapled_response(SSL *ssl, const unsigned char **bytes) {
    return SSL_get_tlsext_status_ocsp_resp(ssl, bytes);
}
// Lets a server staple a response, whose bytes the SSL releases by OPENSSL_free.
static inline long netwatch_ssl_set_stapled_response(SSL *ssl, unsigned char *bytes, long count) {
    return SSL_set_tlsext_status_ocsp_resp(ssl, bytes, count);
}

// Swift cannot pass NULL for the two other function types; they are never used.
static inline int netwatch_ssl_ctx_new_index(CRYPTO_EX_free *release) {
    return SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, release);
}

// Prints a name on one line (RFC 2253), with characters beyond ASCII as UTF-8. The flags are macro expressions.
static inline int netwatch_print_name(BIO *out, const X509_NAME *name) {
    return X509_NAME_print_ex(out, name, 0, (XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) | ASN1_STRFLGS_UTF8_CONVERT);
}

#endif
