// OpenSSL 3.0 or newer. Macros that Swift does not import have a function of their own here.
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

// CRYPTO_EX_free is a type of function that Swift cannot hold in a struct's place of a NULL: the two others are never used.
static inline int netwatch_ssl_ctx_new_index(CRYPTO_EX_free *release) {
    return SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, release);
}

// One line, RFC 2253, letters beyond ASCII as UTF-8: the flags are expressions of macros.
static inline int netwatch_print_name(BIO *out, const X509_NAME *name) {
    return X509_NAME_print_ex(out, name, 0, (XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) | ASN1_STRFLGS_UTF8_CONVERT);
}

#endif
