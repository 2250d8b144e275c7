#include <openssl/crypto.h>

// OpenSSL frees everything it has when the process calls exit(3) or returns from main, while the threads of sessions and servers go on
// using it: a program that ended in the middle of a transfer was ended by SIGSEGV in its stead. It is told to leave its memory to the
// kernel (OPENSSL_init_crypto(3), OPENSSL_INIT_NO_ATEXIT). Only its first initialization counts, whoever causes that, so this runs
// before main.
__attribute__((constructor)) static void netwatch_openssl_setup(void) {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}
