internal import COpenSSL

/// The library as a whole.
package enum OpenSSL {
    // OpenSSL frees everything it has when the process calls exit(3) or returns from main, while the threads of sessions and servers go on
    // using it: a program that ended in the middle of a transfer was ended by SIGSEGV in its stead. It is told to leave its memory to the
    // kernel (OPENSSL_init_crypto(3)).
    private static let isPrepared: Bool = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    /// Makes it ready, the first time. To be called before anything else of it, and of libraries that use it: only its first
    /// initialization in a process has a say in how it ends. A program that never comes here never initializes it.
    package static func prepare() { _ = isPrepared }
}
