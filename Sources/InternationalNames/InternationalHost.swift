internal import CIdn2

/// The conversion of international host names to ASCII (IDNA2008, RFC 5891; mapped by UTS #46 without transitional processing, as
/// in browsers).
package enum InternationalHost {
    /// `host` with each non-ASCII label as an A-label (`xn--…`); `nil` if IDNA does not allow the host.
    package static func ascii(_ host: String) -> String? {
        // C code would ignore the text behind a NUL. The capital sharp s maps to the small one (UTS #46, revision 31); libidn2
        // 2.3 maps it to "ss".
        guard !host.utf8.contains(0) else { return nil }
        let host = host.replacing("\u{1E9E}", with: "\u{DF}")
        return lookup(host, IDN2_NONTRANSITIONAL) ?? labelByLabel(host)
    }

    /// Converts label by label. UTS #46 allows symbols, IDNA2008 does not. libidn2 accepts them only in transitional processing,
    /// which differs only in the deviation characters (UTS #46 section 2.3).
    private static func labelByLabel(_ host: String) -> String? {
        var labels: [String] = []
        for label in host.unicodeScalars.split(omittingEmptySubsequences: false, whereSeparator: isFullStop).map(String.init) {
            let isLast = labels.count > 0 && label.isEmpty
            let hasDeviation = label.unicodeScalars.contains(where: isDeviation)
            guard
                let ascii = isLast
                    ? "" : lookup(label, IDN2_NONTRANSITIONAL) ?? (hasDeviation ? nil : lookup(label, IDN2_TRANSITIONAL))
            else { return nil }
            labels.append(ascii)
        }
        let ascii = labels.joined(separator: ".")
        return ascii.utf8.count <= 254 && !ascii.contains("..") ? ascii : nil
    }

    /// The characters that end a label (RFC 3490 section 3.1).
    private static func isFullStop(_ scalar: Unicode.Scalar) -> Bool {
        [".", "\u{3002}", "\u{FF0E}", "\u{FF61}"].contains(scalar)
    }

    private static func isDeviation(_ scalar: Unicode.Scalar) -> Bool {
        ["\u{DF}", "\u{3C2}", "\u{200C}", "\u{200D}"].contains(scalar)
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
        // UTS #46 maps a full-width slash to a slash, and U+2100 to `a/c`, so the result is checked.
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
