/// A change of a list of cookies: cookies are removed first, then set.
struct CookieChanges: Equatable, Sendable {
    /// The removed cookies. Their values do not matter.
    var removed: [CookieLine] = []
    var set: [CookieLine] = []

    init(removed: [CookieLine] = [], set: [CookieLine] = []) {
        self.removed = removed
        self.set = set
    }

    var isEmpty: Bool { removed.isEmpty && set.isEmpty }
}

/// The cookies of a store, in the order in which they were first set.
///
/// It alone decides which cookies a request sends, and which are shown. A cookie is found by its key, its identity or its domain without a comparison
/// with the other cookies. A removed cookie leaves an empty slot, and the slots are renumbered when half of them are empty. So the time of a
/// change does not depend on the number of cookies, except for evictions and expiries, which scan all of them.
struct CookieList: Sendable {
    /// The most cookies and the most bytes that one request sends, as in libcurl's own store. Those with longer paths have precedence.
    static let mostPerRequest = (count: 150, bytes: 8_190)

    private struct Entry: Sendable {
        var line: CookieLine
        let key: [UInt8]
        /// `nil` for a line without seven columns.
        let identity: Cookie.Identity?
        /// The conditions under which a request sends the cookie; `nil` if none does.
        var conditions: Conditions?
        /// The expiry in seconds since 1970; `Int64.max` for a cookie that does not expire.
        var expiry: Int64
    }

    private struct Conditions: Sendable {
        let includesSubdomains: Bool
        let isSecure: Bool
        let path: [UInt8]

        init?(_ line: CookieLine) {
            guard line.maySend, let columns = line.validColumns else { return nil }
            includesSubdomains = CookieLine.isTrue(columns[1])
            isSecure = CookieLine.isTrue(columns[3])
            path = Array(columns[2])
        }

        /// Whether a request sends the cookie of a domain, which is the request's host or above it.
        func allow(_ scope: CookieScope, isHost: Bool, isSecure isSecureRequest: Bool) -> Bool {
            (isHost || includesSubdomains) && (!isSecure || isSecureRequest) && scope.isBelow(path)
        }
    }

    private var entries: [Entry?] = []
    /// The slots of the cookies by their keys.
    private var slots: [[UInt8]: Int] = [:]
    /// The keys of the cookies that have the same identity, such as a cookie of a host and one of a domain.
    private var keys: [Cookie.Identity: [[UInt8]]] = [:]
    /// The slots of the cookies by their domains, in order. Some of the slots may be empty.
    private var domains: [[UInt8]: [Int]] = [:]
    /// No cookie expires before this time.
    private var firstExpiry = Int64.max

    init() {}

    init(_ lines: [CookieLine], now seconds: Int64) { apply(CookieChanges(set: lines), now: seconds) }

    var isEmpty: Bool { slots.isEmpty }

    var lines: [CookieLine] { entries.compactMap { $0?.line } }

    /// The cookies that a request sends, those with longer paths first, and among these the oldest first (RFC 6265 section 5.4).
    ///
    /// - Parameters:
    ///   - scope: The URL of the request.
    ///   - isSecure: Whether the request may send secure cookies.
    ///   - seconds: The current time in seconds since 1970.
    /// - Returns: The cookies, within ``mostPerRequest``.
    func lines(for scope: CookieScope, isSecure: Bool, at seconds: Int64) -> [CookieLine] {
        var found: [(pathLength: Int, slot: Int)] = []
        scope.forEachDomain { domain, isHost in
            for slot in domains[Array(domain)] ?? [] {
                guard let entry = entries[slot], entry.expiry > seconds, let conditions = entry.conditions,
                    conditions.allow(scope, isHost: isHost, isSecure: isSecure)
                else { continue }
                found.append((conditions.path.count, slot))
            }
        }
        found.sort { $0.pathLength == $1.pathLength ? $0.slot < $1.slot : $0.pathLength > $1.pathLength }
        var bytes = 0
        return found.prefix(CookieList.mostPerRequest.count).compactMap { entries[$0.slot]?.line }.prefix { line in
            // With `=` and `; `.
            bytes += (line.validColumns.map { $0[5].count + $0[6].count } ?? 0) + 3
            return bytes <= CookieList.mostPerRequest.bytes
        }
    }

    /// The cookies with the same name, domain and path as `cookie`. The names of two may differ in bytes that are not UTF-8.
    func lines(sameAs cookie: Cookie) -> [CookieLine] {
        (keys[cookie.identity] ?? []).compactMap { slots[$0] }.sorted().compactMap { entries[$0]?.line }
    }

    /// Applies changes, and evicts expired and surplus cookies.
    ///
    /// An expiry alone is no change, because expired cookies are neither sent nor shown.
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
        return hasChanged
    }

    /// The cookies that have not expired at a time in seconds since 1970.
    func lines(at seconds: Int64) -> [CookieLine] {
        entries.compactMap { entry in entry.flatMap { $0.expiry > seconds ? $0.line : nil } }
    }

    /// The changes that a response without TLS may make: none that removes, replaces or hides a secure cookie (RFC 6265bis section 5.7). Its own
    /// secure cookies are refused before (``SetCookie``).
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
            entries[slot]?.conditions = Conditions(line)
            entries[slot]?.expiry = expiry
            firstExpiry = min(firstExpiry, expiry)
        } else {
            append(Entry(line: line, key: key, identity: line.identity, conditions: Conditions(line), expiry: expiry))
        }
        return true
    }

    private mutating func append(_ entry: Entry) {
        slots[entry.key] = entries.count
        domains[Array(entry.key.prefix { $0 != 0x09 }), default: []].append(entries.count)
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
        (entries, slots, keys, domains, firstExpiry) = ([], [:], [:], [:], .max)
        entries.reserveCapacity(kept.count)
        for entry in kept { append(entry) }
    }
}

extension CookieLine {
    /// The domain in lower case and without a leading dot, the path and the name: a cookie replaces one with the same key (RFC 6265 section 5.3,
    /// step 11).
    package var key: [UInt8] {
        var key: [UInt8] = []
        key.reserveCapacity(64)
        var column = 0
        for byte in bytes.dropFirst(bytes.starts(with: CookieLine.httpOnlyMark) ? CookieLine.httpOnlyMark.count : 0) {
            if byte == 0x09 { column += 1 }
            guard column == 0 || column == 2 || column == 5 else {
                if column > 5 { break }
                continue
            }
            if column == 0, key.isEmpty, byte == UInt8(ascii: ".") { continue }
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

    /// Whether the cookie is sent over https only. `TRUE` is read in any case.
    var isSecure: Bool {
        let columns = columns
        return columns.count > 3 && CookieLine.isTrue(columns[3])
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

    /// The columns of a cookie: seven, with a name, a path and an expiry; `nil` for another line.
    var validColumns: [ArraySlice<UInt8>]? {
        let columns = columns
        guard columns.count == 7, !columns[5].isEmpty, columns[2].first == UInt8(ascii: "/"),
            Int64(String(decoding: columns[4], as: UTF8.self)) != nil
        else { return nil }
        return columns
    }

    /// Whether a column is `TRUE`, in any case.
    static func isTrue(_ column: ArraySlice<UInt8>) -> Bool {
        column.count == 4 && zip(column, "true".utf8).allSatisfy { $0 | 0x20 == $1 }
    }

    /// The name and the value, as in the field `Cookie`.
    var pair: [UInt8] {
        guard let columns = validColumns else { return [] }
        return columns[5] + [UInt8(ascii: "=")] + columns[6]
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
