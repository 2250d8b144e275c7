internal import COpenSSL

/// OpenSSL's queue of errors, which belongs to the thread and so to libcurl too: what is put there is taken out again.
package enum OpenSSLErrors {
    /// Runs `body`; what it leaves in the queue is removed, what was there before stays. OpenSSL is ready then (``OpenSSL/prepare()``).
    package static func contained<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        OpenSSL.prepare()
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        return try body()
    }

    /// The newest error in OpenSSL's words.
    package static var newest: String {
        let code = ERR_peek_last_error()
        return code == 0 ? "no reason given" : ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
    }
}
