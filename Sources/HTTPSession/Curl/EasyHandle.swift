internal import ByteComparison
internal import CCurl
internal import Glibc

/// An easy handle (libcurl-easy(3)). The engine that made it cleans it up.
final class EasyHandle {
    let raw: UnsafeMutableRawPointer
    /// The transfer that uses the handle. The callbacks find it here, so that they need not be set again for the next transfer.
    /// The handle does not retain it.
    var transfer: CurlTransfer? {
        get { unretainedTransfer?.takeUnretainedValue() }
        set { unretainedTransfer = newValue.map(Unmanaged.passUnretained) }
    }
    // The engine retains the transfer, also during a callback. A response's head has ten callbacks, which need no references of their own.
    // Unchecked: see SessionLoop.
    @exclusivity(unchecked) private(set) var unretainedTransfer: Unmanaged<CurlTransfer>?
    /// The text of libcurl for an error (CURLOPT_ERRORBUFFER).
    let errorText: UnsafeMutablePointer<CChar>
    // Unchecked: see SessionLoop.
    @exclusivity(unchecked) var firstField = FirstFieldWatch()
    private let parsedURL = ParsedURL()
    /// The URL that is set; `nil` after a reset.
    private var url: String?
    /// Whether a `Cookie` field is set.
    private(set) var hasCookies = false
    /// The value of ``CurlEngine/overridesVersion`` when the host overrides were set; `nil` after a reset.
    var overridesVersion: Int?

    init() throws(HTTPSessionError) {
        guard let raw = curl_easy_init() else { throw HTTPSessionError(.transferFailed, "curl_easy_init: no memory") }
        self.raw = raw
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit { errorText.deallocate() }

    /// Frees libcurl's handle. No other method may be called after this one.
    func cleanUp() { curl_easy_cleanup(raw) }

    /// Removes the options and callbacks. Connections and resolved names belong to the multi handle, and HSTS to the share, and remain.
    func reset() {
        curl_easy_reset(raw)
        (url, overridesVersion, hasCookies) = (nil, nil, false)
    }

    /// Sets the value of the field `Cookie`, which libcurl copies; empty for no field.
    func set(cookies: [UInt8]) throws(HTTPSessionError) {
        hasCookies = !cookies.isEmpty
        guard hasCookies else { return try set(CURLOPT_COOKIE, pointer: nil) }
        let code = (cookies + [0]).withUnsafeBytes {
            netwatch_curl_set_string(
                raw, Int32(bitPattern: CURLOPT_COOKIE.rawValue), $0.baseAddress?.assumingMemoryBound(to: CChar.self))
        }
        try check(code, CURLOPT_COOKIE)
    }

    /// Sets the URL of the next transfer, in two forms.
    ///
    /// If libcurl has only the text, it parses the text for each transfer and writes a normal form of it, which takes 10,000 instructions.
    /// With CURLOPT_CURLU it copies the parts of a parsed URL, and changes its copy when HSTS upgrades the request. It needs the text too, for
    /// the further requests of a login.
    func set(url text: String) throws(HTTPSessionError) {
        if let url, url.isExactly(text) { return }
        url = nil
        try set(CURLOPT_URL, text)
        try set(CURLOPT_CURLU, pointer: parsedURL.parse(text))
        url = text
    }

    /// Sets CURLOPT_BUFFERSIZE in bytes. - Returns: Whether libcurl accepts it: not while it keeps the buffer of the last transfer.
    func accepts(bufferSize: Int) -> Bool {
        netwatch_curl_set_long(raw, Int32(bitPattern: CURLOPT_BUFFERSIZE.rawValue), bufferSize) == CURLE_OK
    }

    func set(_ option: CURLoption, _ value: Int) throws(HTTPSessionError) {
        try check(netwatch_curl_set_long(raw, Int32(bitPattern: option.rawValue), value), option)
    }

    func set(_ option: CURLoption, _ value: Bool) throws(HTTPSessionError) {
        try set(option, value ? 1 : 0)
    }

    /// Sets an option of type `curl_off_t`.
    func set(_ option: CURLoption, offset value: Int64) throws(HTTPSessionError) {
        try check(netwatch_curl_set_offset(raw, Int32(bitPattern: option.rawValue), curl_off_t(value)), option)
    }

    /// Sets an option of type string, which libcurl copies.
    func set(_ option: CURLoption, _ value: String?) throws(HTTPSessionError) {
        guard let value else { return try set(option, pointer: nil) }
        // withCString, because an optional string as an argument would be copied first.
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

    /// The value with this number, which the header may not define yet.
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

    /// The socket of the last connection (CURLINFO_ACTIVESOCKET); `nil` if it is closed.
    var socket: curl_socket_t? {
        var socket: curl_socket_t = -1
        let code = netwatch_curl_get_socket(raw, Int32(bitPattern: CURLINFO_ACTIVESOCKET.rawValue), &socket)
        return code == CURLE_OK && socket >= 0 ? socket : nil
    }

    func string(_ info: CURLINFO) -> String? {
        guard let value = text(info), value.pointee != 0 else { return nil }
        return String(cString: value)
    }

    /// Whether the last request used https (CURLINFO_SCHEME). The value is in capitals until libcurl 8.
    var isSecure: Bool { text(CURLINFO_SCHEME).map { strcasecmp($0, "https") == 0 } ?? false }

    private func text(_ info: CURLINFO) -> UnsafeMutablePointer<CChar>? {
        var value: UnsafeMutablePointer<CChar>?
        return netwatch_curl_get_string(raw, Int32(bitPattern: info.rawValue), &value) == CURLE_OK ? value : nil
    }
}
