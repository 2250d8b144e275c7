/// The value of the only `Cookie` field of a request (RFC 6265 section 5.4).
enum CookieField {
    /// The cookies of the request itself, and those of the store with other names: a server takes either one of two with the same name.
    ///
    /// - Parameters:
    ///   - own: the value of the request's own field.
    ///   - stored: the value for the cookies of the store; empty for none.
    /// - Returns: the value.
    static func joined(own: String, stored: [UInt8]) -> [UInt8] {
        let names = Set(own.utf8.split(separator: UInt8(ascii: ";")).map { name(of: Array($0)[...]) })
        var value = Array(own.utf8)
        for pair in stored.split(separator: UInt8(ascii: ";")) where !names.contains(name(of: pair)) {
            value += Array("; ".utf8) + pair.drop { $0 == 0x20 }
        }
        return value
    }

    private static func name(of pair: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var name = pair.drop { $0 == 0x20 || $0 == 0x09 }.prefix { $0 != UInt8(ascii: "=") }
        while name.last == 0x20 || name.last == 0x09 { name.removeLast() }
        return name
    }
}
