internal import CCurl

/// The watch for a response whose first field line begins with a space or tab, as if it continued a field (RFC 9112 section 2.2).
///
/// libcurl 7.88 keeps the fields of a response (lib/headers.c, `Curl_headers_push`). The next transfer of the handle frees them, but not the pointer
/// to the last one, `prevhead`. Such a line would then be appended to freed memory. libcurl keeps a line before it delivers it, so the callback of the
/// fields cannot prevent that. It gives the line to its debug function even before, and only there the line can be changed. The debug function
/// runs between the status line and the first field of the first response of a transfer: it makes libcurl write its comments for it.
///
/// Needed until libcurl 8.1.0, which clears the pointer.
struct FirstFieldWatch {
    /// Whether the pointer may be one to freed memory: the handle had an earlier transfer, and none of this one's fields is kept.
    private(set) var isNeeded = false
    /// Whether libcurl calls the debug function.
    private(set) var isOn = false
    /// Whether the next line may continue the one before.
    private var followsField = false

    /// The transfer of the handle has ended, and another one may begin.
    mutating func transferEnded() { self = FirstFieldWatch(isNeeded: CurlLibrary.keepsFreedField) }

    private init(isNeeded: Bool) { self.isNeeded = isNeeded }

    init() {}

    mutating func turnOn() { (isOn, followsField) = (true, false) }

    mutating func turnOff() { isOn = false }

    /// libcurl delivers lines of a head. - Returns: Whether the debug function shall be called for the following ones.
    mutating func received(_ piece: UnsafeRawBufferPointer) -> Bool {
        guard let first = piece.first else { return isOn }
        // libcurl keeps neither a status line nor the end of a head.
        if !Self.isSpace(first), !Self.isStatusLine(piece) { isNeeded = false }
        return isNeeded
    }

    /// libcurl has read a line, and is about to keep it.
    ///
    /// - Returns: Whether the line continues a field that does not exist.
    mutating func isAboutToKeep(_ line: UnsafeRawBufferPointer) -> Bool {
        guard isNeeded, let first = line.first else { return false }
        if first == 0x20 || first == 0x09, !followsField { return true }
        followsField = !Self.isStatusLine(line)
        return false
    }

    /// Whether libcurl skips the byte before a status line, or it is the end of a head.
    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    /// `HTTP/1.1 200 OK`, or `HTTP 200` of a very old server. The name of a field has neither of the bytes behind `HTTP`.
    private static func isStatusLine(_ line: UnsafeRawBufferPointer) -> Bool {
        line.count > 4 && line[0] == 0x48 && line[1] == 0x54 && line[2] == 0x54 && line[3] == 0x50
            && (line[4] == 0x2F || line[4] == 0x20)
    }
}

extension EasyHandle {
    /// Lets libcurl call the debug function, or no longer.
    private func setWatching(_ isOn: Bool) { try? set(CURLOPT_VERBOSE, isOn) }

    /// The transfer of the handle is about to receive a head.
    func watchFirstField() {
        guard firstField.isNeeded, !firstField.isOn else { return }
        firstField.turnOn()
        setWatching(true)
    }

    /// libcurl delivers lines of a head.
    func receivedLines(_ piece: UnsafeRawBufferPointer) {
        if firstField.received(piece) { return watchFirstField() }
        if firstField.isOn { stopWatching() }
    }

    /// The transfer of the handle has ended.
    func transferEnded() {
        if firstField.isOn { stopWatching() }
        firstField.transferEnded()
    }

    private func stopWatching() {
        firstField.turnOff()
        setWatching(false)
    }
}
