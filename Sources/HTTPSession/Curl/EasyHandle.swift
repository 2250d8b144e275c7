internal import CCurl
internal import Glibc

/// An easy handle (libcurl-easy(3)). The engine that made it cleans it up.
final class EasyHandle {
    let raw: UnsafeMutableRawPointer
    /// Whose attempt it makes: libcurl's functions find it here, so that a handle that is used again need not be told anew of whom to call.
    // Unchecked: see SessionLoop.
    @exclusivity(unchecked) var transfer: CurlTransfer?
    /// What libcurl says of a failure (CURLOPT_ERRORBUFFER).
    let errorText: UnsafeMutablePointer<CChar>

    init() throws(HTTPSessionError) {
        guard let raw = curl_easy_init() else { throw HTTPSessionError(.transferFailed, "curl_easy_init: no memory") }
        self.raw = raw
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit { errorText.deallocate() }

    /// libcurl's end of it: nothing else may be asked of it any more.
    func cleanUp() { curl_easy_cleanup(raw) }

    func set(_ option: CURLoption, _ value: Int) throws(HTTPSessionError) {
        try check(netwatch_curl_set_long(raw, Int32(bitPattern: option.rawValue), value), option)
    }

    func set(_ option: CURLoption, _ value: Bool) throws(HTTPSessionError) {
        try set(option, value ? 1 : 0)
    }

    /// For options that take a `curl_off_t`.
    func set(_ option: CURLoption, offset value: Int64) throws(HTTPSessionError) {
        try check(netwatch_curl_set_offset(raw, Int32(bitPattern: option.rawValue), curl_off_t(value)), option)
    }

    /// libcurl copies the text.
    func set(_ option: CURLoption, _ value: String?) throws(HTTPSessionError) {
        guard let value else { return try set(option, pointer: nil) }
        // Passed as an argument, a text that may be missing is copied first.
        try check(value.withCString { netwatch_curl_set_string(raw, Int32(bitPattern: option.rawValue), $0) }, option)
    }

    func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer?) throws(HTTPSessionError) {
        try check(netwatch_curl_set_pointer(raw, Int32(bitPattern: option.rawValue), value), option)
    }

    private func check(_ code: CURLcode, _ option: CURLoption) throws(HTTPSessionError) {
        try CurlFailure.check(code, CurlEvidence(text: "option \(option.rawValue): \(String(cString: curl_easy_strerror(code)))"))
    }

    func long(_ info: CURLINFO) -> Int {
        var value = 0
        return netwatch_curl_get_long(raw, Int32(bitPattern: info.rawValue), &value) == CURLE_OK ? value : 0
    }

    func offset(_ info: CURLINFO) -> Int64 { offset(number: Int32(bitPattern: info.rawValue)) ?? 0 }

    /// For values that the header may not know yet.
    func offset(number: Int32) -> Int64? {
        var value: curl_off_t = 0
        return netwatch_curl_get_offset(raw, number, &value) == CURLE_OK ? Int64(value) : nil
    }

    /// The SSL of the connection in use (CURLINFO_TLS_SSL_PTR); valid inside a callback.
    var tlsPointer: UnsafeMutableRawPointer? {
        var pointer: UnsafeMutableRawPointer?
        guard netwatch_curl_get_pointer(raw, Int32(bitPattern: CURLINFO_TLS_SSL_PTR.rawValue), &pointer) == CURLE_OK, let pointer
        else { return nil }
        return pointer.assumingMemoryBound(to: curl_tlssessioninfo.self).pointee.internals
    }

    /// The socket of the connection last used (CURLINFO_ACTIVESOCKET), if that is still there.
    var socket: curl_socket_t? {
        var socket: curl_socket_t = -1
        let code = netwatch_curl_get_socket(raw, Int32(bitPattern: CURLINFO_ACTIVESOCKET.rawValue), &socket)
        return code == CURLE_OK && socket >= 0 ? socket : nil
    }

    func string(_ info: CURLINFO) -> String? {
        guard let value = text(info), value.pointee != 0 else { return nil }
        return String(cString: value)
    }

    /// Whether it last spoke to a server by https (CURLINFO_SCHEME): in capitals until libcurl 8.
    var isSecure: Bool { text(CURLINFO_SCHEME).map { strcasecmp($0, "https") == 0 } ?? false }

    private func text(_ info: CURLINFO) -> UnsafeMutablePointer<CChar>? {
        var value: UnsafeMutablePointer<CChar>?
        return netwatch_curl_get_string(raw, Int32(bitPattern: info.rawValue), &value) == CURLE_OK ? value : nil
    }
}

/// A list of lines as libcurl takes them (curl_slist_append(3)), for as long as it reads them.
struct LineList: ~Copyable {
    private(set) var raw: UnsafeMutablePointer<curl_slist>?

    init(_ lines: [String]) throws(HTTPSessionError) {
        for line in lines {
            guard let longer = curl_slist_append(raw, line) else {
                curl_slist_free_all(raw)
                throw HTTPSessionError(.transferFailed, "curl_slist_append: no memory")
            }
            raw = longer
        }
    }

    deinit { curl_slist_free_all(raw) }
}
