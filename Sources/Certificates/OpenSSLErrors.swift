internal import COpenSSL

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
