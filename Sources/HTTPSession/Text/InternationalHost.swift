internal import CIdn2

/// International host names in ASCII (IDNA2008, RFC 5891; mapped by UTS #46 without transitional processing, as browsers do it).
enum InternationalHost {
    /// `host` with each label of other scripts as an A-label (`xn--…`); `nil` for a host that IDNA does not allow.
    static func ascii(_ host: String) -> String? {
        // What stands behind a zero byte would be lost.
        guard !host.utf8.contains(0) else { return nil }
        if let ascii = lookup(host, IDN2_NONTRANSITIONAL) { return ascii }
        // Symbols are valid in UTS #46 and not in IDNA2008. libidn2 takes them in transitional processing only, which is the same but for the
        // deviation characters (UTS #46 section 2.3).
        return host.unicodeScalars.contains(where: isDeviation) ? nil : lookup(host, IDN2_TRANSITIONAL)
    }

    private static func isDeviation(_ scalar: Unicode.Scalar) -> Bool {
        ["\u{DF}", "\u{1E9E}", "\u{3C2}", "\u{200C}", "\u{200D}"].contains(scalar)
    }

    private static func lookup(_ host: String, _ processing: idn2_flags) -> String? {
        var result: UnsafeMutablePointer<UInt8>?
        let flags = Int32(IDN2_NFC_INPUT.rawValue | processing.rawValue)
        let status = host.withCString { text in
            text.withMemoryRebound(to: UInt8.self, capacity: host.utf8.count + 1) { idn2_lookup_u8($0, &result, flags) }
        }
        defer { idn2_free(result) }
        guard status == IDN2_OK.rawValue, let result else { return nil }
        let ascii = String(cString: result)
        // UTS #46 maps a full-width slash to a slash, and U+2100 to `a/c`.
        let hasEmptyLabel = ascii.hasPrefix(".") || ascii.contains("..")
        return !hasEmptyLabel && ascii.utf8.allSatisfy(isHostByte) ? ascii : nil
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: false
        }
    }
}
