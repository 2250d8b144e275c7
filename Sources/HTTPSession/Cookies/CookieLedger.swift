/// What makes one list of cookies another: removed first, then set.
struct CookieChanges: Equatable, Sendable {
    /// As they were.
    var removed: [CookieLine] = []
    var set: [CookieLine] = []

    init(removed: [CookieLine] = [], set: [CookieLine] = []) {
        self.removed = removed
        self.set = set
    }

    /// Few cookies change at a time, and those that do not keep their places: only what lies between is looked at.
    init(from old: [CookieLine], to new: [CookieLine]) {
        let most = min(old.count, new.count)
        var start = 0
        while start < most, old[start] == new[start] { start += 1 }
        var alike = 0
        while alike < most - start, old[old.count - 1 - alike] == new[new.count - 1 - alike] { alike += 1 }
        var former: [[UInt8]: CookieLine] = [:]
        for line in old[start..<(old.count - alike)] { former[line.key] = line }
        for line in new[start..<(new.count - alike)] where former.removeValue(forKey: line.key) != line { set.append(line) }
        removed = former.isEmpty ? [] : old[start..<(old.count - alike)].filter { former[$0.key] == $0 }
    }

    var isEmpty: Bool { removed.isEmpty && set.isEmpty }
}

/// The cookies of a store, in the order in which they first came, and how often they have changed.
struct CookieLedger: Sendable {
    private(set) var lines: [CookieLine] = []
    private var keys: [[UInt8]] = []
    /// In seconds since 1970; the largest number for those that do not expire.
    private var expiries: [Int64] = []
    private(set) var version: UInt64 = 0

    init() {}

    init(_ lines: [CookieLine], now seconds: Int64) {
        apply(CookieChanges(set: lines), now: seconds)
        version = 0
    }

    /// What is over is left out, and is no change: it ends in every jar without a word.
    ///
    /// - Returns: whether anything is other than before.
    @discardableResult
    mutating func apply(_ changes: CookieChanges, now seconds: Int64, most: Int = CookieBound.most) -> Bool {
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
        // First: they take no living one's place.
        removeExpired(at: seconds)
        if lines.count > most {
            // Not again for each that follows.
            lines = CookieBound.kept(lines, most: most * 9 / 10)
            keys = lines.map(\.key)
            expiries = lines.map { $0.expiry ?? .max }
        }
        if hasChanged { version += 1 }
        return hasChanged
    }

    /// Those that are not over.
    func lines(at seconds: Int64) -> [CookieLine] {
        guard expiries.contains(where: { $0 <= seconds }) else { return lines }
        return zip(lines, expiries).filter { $1 > seconds }.map(\.0)
    }

    /// What of the changes may come from a server that anybody may have spoken for: nothing that removes a cookie of https, takes its place
    /// or is sent instead of it. A jar of libcurl's refuses that of what it has, and gives nobody but https a cookie for https alone.
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
        let left = expiries.indices.filter { expiries[$0] > seconds }
        lines = left.map { lines[$0] }
        keys = left.map { keys[$0] }
        expiries = left.map { expiries[$0] }
    }
}

extension CookieLine {
    /// What no two cookies of libcurl's jar have in common: the domain, whether those below are meant, the path and the name.
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
            // Domains are compared whatever their case.
            key.append(column == 0 && (0x41...0x5A).contains(byte) ? byte | 0x20 : byte)
        }
        return key
    }

    private static let httpOnlyMark = Array("#HttpOnly_".utf8)

    var domain: ArraySlice<UInt8> { columns.first ?? [] }

    /// The same cookie, long expired: what takes its place and is not there.
    var expired: CookieLine {
        var columns = bytes.split(separator: 0x09, maxSplits: 6, omittingEmptySubsequences: false)
        guard columns.count == 7 else { return self }
        columns[4] = [0x31]
        return CookieLine([UInt8](columns.joined(separator: [0x09])))
    }

    /// When it is over, in seconds since 1970; `nil` for never.
    var expiry: Int64? {
        let columns = bytes.split(separator: 0x09, maxSplits: 5, omittingEmptySubsequences: false)
        guard columns.count == 6, let expires = Int64(String(decoding: columns[4], as: UTF8.self)), expires != 0 else {
            return nil
        }
        return expires
    }

    /// Whether it is over at a time, in seconds since 1970.
    package func hasExpired(at seconds: Int64) -> Bool { expiry.map { $0 <= seconds } ?? false }

    /// Whether it is sent over https alone. libcurl reads the word in any case.
    var isSecure: Bool {
        var column = 0
        for byte in bytes {
            if column == 3 { return byte | 0x20 == UInt8(ascii: "t") }
            if byte == 0x09 { column += 1 }
        }
        return false
    }

    /// Whether a server that gets the other one may take it for this one (RFC 6265bis section 5.7): the same name, one's domain the
    /// other's or above it, and the other's path this one's or below it.
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

    /// Whether a request may carry it: without control bytes, which would leave in `Cookie`, and of a host without a dot at its end, whose
    /// domain no list of public suffixes knows.
    var maySend: Bool {
        guard bytes.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else { return false }
        return columns.count < 7 || columns[0].last != UInt8(ascii: ".")
    }

    private var columns: [ArraySlice<UInt8>] {
        bytes.dropFirst(bytes.starts(with: CookieLine.httpOnlyMark) ? CookieLine.httpOnlyMark.count : 0)
            .split(separator: 0x09, maxSplits: 6, omittingEmptySubsequences: false)
    }

    /// In lower case, and with a dot before it.
    private static func dotted(_ domain: ArraySlice<UInt8>) -> String {
        let text = String(decoding: domain, as: UTF8.self).lowercased()
        return text.hasPrefix(".") ? text : ".\(text)"
    }
}
