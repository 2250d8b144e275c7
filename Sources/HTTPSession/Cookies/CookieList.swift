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
///
/// A cookie is found by its key or its identity without a comparison with the other cookies. A removed cookie leaves an empty slot, and the slots
/// are renumbered when half of them are empty. So the time of a change does not depend on the number of cookies, except for evictions and
/// expiries, which scan all of them.
struct CookieList: Sendable {
    private struct Entry: Sendable {
        var line: CookieLine
        let key: [UInt8]
        /// `nil` for a line without seven columns.
        let identity: Cookie.Identity?
        /// The expiry in seconds since 1970; `Int64.max` for a cookie that does not expire.
        var expiry: Int64
    }

    private var entries: [Entry?] = []
    /// The slots of the cookies by their keys.
    private var slots: [[UInt8]: Int] = [:]
    /// The keys of the cookies that have the same identity, such as a cookie of a host and one of a domain.
    private var keys: [Cookie.Identity: [[UInt8]]] = [:]
    /// No cookie expires before this time.
    private var firstExpiry = Int64.max
    private(set) var version: UInt64 = 0

    init() {}

    init(_ lines: [CookieLine], now seconds: Int64) {
        apply(CookieChanges(set: lines), now: seconds)
        version = 0
    }

    var lines: [CookieLine] { entries.compactMap { $0?.line } }

    /// The cookies with the same name, domain and path as `cookie`. libcurl stores a cookie of a host and one of a domain separately.
    func lines(sameAs cookie: Cookie) -> [CookieLine] {
        (keys[cookie.identity] ?? []).compactMap { slots[$0] }.sorted().compactMap { entries[$0]?.line }
    }

    /// Applies changes, and evicts expired and surplus cookies.
    ///
    /// An expiry alone is no change, because each cookie jar removes expired cookies itself.
    ///
    /// - Returns: whether a cookie was removed or set.
    @discardableResult
    mutating func apply(_ changes: CookieChanges, now seconds: Int64, most: Int = CookieLimit.most) -> Bool {
        var hasChanged = false
        for line in changes.removed { hasChanged = remove(line.key) || hasChanged }
        for line in changes.set { hasChanged = set(line) || hasChanged }
        // Before the limit is applied, so that no expired cookie displaces a valid one.
        removeExpired(at: seconds)
        if slots.count > most {
            // Down to 90 percent, so that not every following cookie repeats this.
            let kept = Set(CookieLimit.kept(lines, most: most * 9 / 10))
            replaceAll(entries.compactMap { entry in entry.flatMap { kept.contains($0.line) ? $0 : nil } })
        } else if entries.count > 2 * slots.count + 16 {
            replaceAll(entries.compactMap { $0 })
        }
        if hasChanged { version += 1 }
        return hasChanged
    }

    /// The cookies that have not expired at a time in seconds since 1970.
    func lines(at seconds: Int64) -> [CookieLine] {
        entries.compactMap { entry in entry.flatMap { $0.expiry > seconds ? $0.line : nil } }
    }

    /// The changes that a response without TLS may make: none that removes, replaces or hides a secure cookie.
    ///
    /// libcurl's jar enforces the same for the cookies that it has, and takes a secure cookie from https only.
    func allowedInClear(_ changes: CookieChanges, now seconds: Int64) -> CookieChanges {
        let secure = lines(at: seconds).filter(\.isSecure)
        return CookieChanges(
            removed: changes.removed.filter { line in
                guard let slot = slots[line.key], let entry = entries[slot] else { return false }
                return !entry.line.isSecure
            },
            set: changes.set.filter { line in line.isSecure || !secure.contains { $0.wouldYield(to: line) } })
    }

    // MARK: Entries

    private mutating func set(_ line: CookieLine) -> Bool {
        let key = line.key
        let expiry = line.expiry ?? .max
        if let slot = slots[key] {
            guard entries[slot]?.line != line else { return false }
            entries[slot]?.line = line
            entries[slot]?.expiry = expiry
            firstExpiry = min(firstExpiry, expiry)
        } else {
            append(Entry(line: line, key: key, identity: line.identity, expiry: expiry))
        }
        return true
    }

    private mutating func append(_ entry: Entry) {
        slots[entry.key] = entries.count
        entries.append(entry)
        if let identity = entry.identity { keys[identity, default: []].append(entry.key) }
        firstExpiry = min(firstExpiry, entry.expiry)
    }

    private mutating func remove(_ key: [UInt8]) -> Bool {
        guard let slot = slots.removeValue(forKey: key) else { return false }
        if let identity = entries[slot]?.identity {
            keys[identity]?.removeAll { $0 == key }
            if keys[identity]?.isEmpty == true { keys[identity] = nil }
        }
        entries[slot] = nil
        return true
    }

    private mutating func removeExpired(at seconds: Int64) {
        guard firstExpiry <= seconds else { return }
        replaceAll(entries.compactMap { entry in entry.flatMap { $0.expiry > seconds ? $0 : nil } })
    }

    private mutating func replaceAll(_ kept: [Entry]) {
        (entries, slots, keys, firstExpiry) = ([], [:], [:], .max)
        entries.reserveCapacity(kept.count)
        for entry in kept { append(entry) }
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

    /// The identity of the ``Cookie`` with this line; `nil` for a line without seven columns.
    var identity: Cookie.Identity? {
        let columns = columns
        guard columns.count == 7 else { return nil }
        func text(_ column: Int) -> String { String(decoding: columns[column], as: UTF8.self) }
        return Cookie(name: text(5), value: "", domain: text(0), path: text(2)).identity
    }

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
