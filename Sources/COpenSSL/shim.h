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

#endif
