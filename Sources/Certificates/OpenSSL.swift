internal import COpenSSL

/// The initialization of OpenSSL.
package enum OpenSSL {
    // OpenSSL frees all its memory when the process calls exit(3) or returns from main, while the threads of sessions and servers
    // still use it. A program that exited in the middle of a transfer then crashed with SIGSEGV. OPENSSL_INIT_NO_ATEXIT leaves
    // the memory to the kernel (OPENSSL_init_crypto(3)).
    private static let isPrepared: Bool = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    /// Initializes OpenSSL at the first call. Call it before any other function of OpenSSL and of libraries that use it. Only the
    /// first initialization in a process decides about the cleanup at exit. A program that never calls it never initializes
    /// OpenSSL.
    package static func prepare() { _ = isPrepared }
}

/// OpenSSL's error queue of the current thread. libcurl uses the same queue, so errors that this code adds are removed again.
package enum OpenSSLErrors {
    /// Runs `body`, and removes the errors that it adds to the queue; earlier errors stay. Initializes OpenSSL first
    /// (``OpenSSL/prepare()``).
    package static func contained<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        OpenSSL.prepare()
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        return try body()
    }

    /// OpenSSL's text for the newest error.
    package static var newest: String {
        let code = ERR_peek_last_error()
        return code == 0 ? "no reason given" : ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
    }
}
