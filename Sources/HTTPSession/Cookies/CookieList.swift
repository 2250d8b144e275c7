/// The difference between two lists of cookies: cookies are removed first, then set.
struct CookieChanges: Equatable, Sendable {
    /// The removed cookies, with their former values.
    var removed: [CookieLine] = []
    var set: [CookieLine] = []

    init(removed: [CookieLine] = [], set: [CookieLine] = []) {
        self.removed = removed
        self.set = set
    }

    /// Compares two lists.
    ///
    /// Few cookies change at a time, and unchanged ones keep their order. Therefore only the lines after a common start and before a common end are
    /// compared.
    init(from old: [CookieLine], to new: [CookieLine]) {
        let most = min(old.count, new.count)
        var start = 0
        while start < most, old[start] == new[start] { start += 1 }
        var end = 0
        while end < most - start, old[old.count - 1 - end] == new[new.count - 1 - end] { end += 1 }
        var former: [[UInt8]: CookieLine] = [:]
        for line in old[start..<(old.count - end)] { former[line.key] = line }
        for line in new[start..<(new.count - end)] where former.removeValue(forKey: line.key) != line { set.append(line) }
        removed = former.isEmpty ? [] : old[start..<(old.count - end)].filter { former[$0.key] == $0 }
    }

    var isEmpty: Bool { removed.isEmpty && set.isEmpty }
}

/// The cookies of a store, in the order in which they were first set, and the number of their changes.
struct CookieList: Sendable {
    private(set) var lines: [CookieLine] = []
    private var keys: [[UInt8]] = []
    /// The expiries in seconds since 1970; `Int64.max` for cookies that do not expire.
    private var expiries: [Int64] = []
    private(set) var version: UInt64 = 0

    init() {}

    init(_ lines: [CookieLine], now seconds: Int64) {
        apply(CookieChanges(set: lines), now: seconds)
        version = 0
    }

    /// Applies changes, and evicts expired and surplus cookies.
    ///
    /// An expiry alone is no change, because each cookie jar removes expired cookies itself.
    ///
    /// - Returns: whether a cookie was removed or set.
    @discardableResult
    mutating func apply(_ changes: CookieChanges, now seconds: Int64, most: Int = CookieLimit.most) -> Bool {
        var hasChanged = false
        for line in changes.removed {
            guard let index = keys.firstIndex(of: line.key) else { continue }
            lines.remove(at: index)
            keys.remove(at: index)
            expiries.remove(at: index)
            hasChanged = true
        }
        for line in changes.set {
            let key = line.key
            if let index = keys.firstIndex(of: key) {
                guard lines[index] != line else { continue }
                lines[index] = line
                expiries[index] = line.expiry ?? .max
            } else {
                lines.append(line)
                keys.append(key)
                expiries.append(line.expiry ?? .max)
            }
            hasChanged = true
        }
        // Before the limit is applied, so that no expired cookie displaces a valid one.
        removeExpired(at: seconds)
        if lines.count > most {
            // Down to 90 percent, so that not every following cookie repeats this.
            lines = CookieLimit.kept(lines, most: most * 9 / 10)
            keys = lines.map(\.key)
            expiries = lines.map { $0.expiry ?? .max }
        }
        if hasChanged { version += 1 }
        return hasChanged
    }

    /// The cookies that have not expired at a time in seconds since 1970.
    func lines(at seconds: Int64) -> [CookieLine] {
        guard expiries.contains(where: { $0 <= seconds }) else { return lines }
        return zip(lines, expiries).filter { $1 > seconds }.map(\.0)
    }

    /// The changes that a response without TLS may make: none that removes, replaces or hides a secure cookie.
    ///
    /// libcurl's jar enforces the same for the cookies that it has, and takes a secure cookie from https only.
    func allowedInClear(_ changes: CookieChanges, now seconds: Int64) -> CookieChanges {
        let secure = lines(at: seconds).filter(\.isSecure)
        return CookieChanges(
            removed: changes.removed.filter { line in
                guard let index = keys.firstIndex(of: line.key) else { return false }
                return !lines[index].isSecure
            },
            set: changes.set.filter { line in line.isSecure || !secure.contains { $0.wouldYield(to: line) } })
    }

    private mutating func removeExpired(at seconds: Int64) {
        guard expiries.contains(where: { $0 <= seconds }) else { return }
        let valid = expiries.indices.filter { expiries[$0] > seconds }
        lines = valid.map { lines[$0] }
        keys = valid.map { keys[$0] }
        expiries = valid.map { expiries[$0] }
    }
}

extension CookieLine {
    /// The key of a cookie in libcurl's jar: the domain, the flag for subdomains, the path and the name.
    package var key: [UInt8] {
        var key: [UInt8] = []
        key.reserveCapacity(64)
        var column = 0
        for byte in bytes.dropFirst(bytes.starts(with: CookieLine.httpOnlyMark) ? CookieLine.httpOnlyMark.count : 0) {
            if byte == 0x09 { column += 1 }
            guard column < 3 || column == 5 else {
                if column > 5 { break }
                continue
            }
            // Domains are compared without regard to case.
            key.append(column == 0 && (0x41...0x5A).contains(byte) ? byte | 0x20 : byte)
        }
        return key
    }

    private static let httpOnlyMark = Array("#HttpOnly_".utf8)

    var domain: ArraySlice<UInt8> { columns.first ?? [] }

    /// A copy of the cookie with an expiry in the past, which removes the cookie from a jar.
    var expired: CookieLine {
        var columns = bytes.split(separator: 0x09, maxSplits: 6, omittingEmptySubsequences: false)
        guard columns.count == 7 else { return self }
        columns[4] = [0x31]
        return CookieLine([UInt8](columns.joined(separator: [0x09])))
    }

    /// The expiry in seconds since 1970; `nil` for a cookie that does not expire.
    var expiry: Int64? {
        let columns = bytes.split(separator: 0x09, maxSplits: 5, omittingEmptySubsequences: false)
        guard columns.count == 6, let expires = Int64(String(decoding: columns[4], as: UTF8.self)), expires != 0 else {
            return nil
        }
        return expires
    }

    /// Whether the cookie has expired at a time in seconds since 1970.
    package func hasExpired(at seconds: Int64) -> Bool { expiry.map { $0 <= seconds } ?? false }

    /// Whether the cookie is sent over https only. libcurl reads `TRUE` in any case.
    var isSecure: Bool {
        var column = 0
        for byte in bytes {
            if column == 3 { return byte | 0x20 == UInt8(ascii: "t") }
            if byte == 0x09 { column += 1 }
        }
        return false
    }

    /// Whether a server could mistake `other` for this cookie (RFC 6265bis section 5.7).
    ///
    /// The names are the same, one domain equals the other or contains it, and the path of `other` equals this path or lies below it.
    func wouldYield(to other: CookieLine) -> Bool {
        let (own, others) = (columns, other.columns)
        guard own.count == 7, others.count == 7, own[5] == others[5] else { return false }
        let (domain, otherDomain) = (CookieLine.dotted(own[0]), CookieLine.dotted(others[0]))
        guard domain.hasSuffix(otherDomain) || otherDomain.hasSuffix(domain) else { return false }
        let (path, otherPath) = (own[2], others[2])
        guard otherPath.starts(with: path) else { return false }
        return path.count == otherPath.count || path.last == UInt8(ascii: "/")
            || otherPath.dropFirst(path.count).first == UInt8(ascii: "/")
    }

    /// Whether a request may send the cookie.
    ///
    /// Control bytes would enter the `Cookie` field. No public-suffix list has the domain of a host that ends in a dot.
    var maySend: Bool {
        guard bytes.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else { return false }
        return columns.count < 7 || columns[0].last != UInt8(ascii: ".")
    }

    private var columns: [ArraySlice<UInt8>] {
        bytes.dropFirst(bytes.starts(with: CookieLine.httpOnlyMark) ? CookieLine.httpOnlyMark.count : 0)
            .split(separator: 0x09, maxSplits: 6, omittingEmptySubsequences: false)
    }

    /// The domain in lower case, with a leading dot.
    private static func dotted(_ domain: ArraySlice<UInt8>) -> String {
        let text = String(decoding: domain, as: UTF8.self).lowercased()
        return text.hasPrefix(".") ? text : ".\(text)"
    }
}
