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
    private(set) var version: UInt64 = 0

    init(_ lines: [CookieLine] = []) {
        apply(CookieChanges(set: lines))
        version = 0
    }

    /// - Returns: whether anything is other than before.
    @discardableResult
    mutating func apply(_ changes: CookieChanges, most: Int = CookieBound.most) -> Bool {
        var hasChanged = false
        for line in changes.removed {
            guard let index = keys.firstIndex(of: line.key) else { continue }
            lines.remove(at: index)
            keys.remove(at: index)
            hasChanged = true
        }
        for line in changes.set {
            let key = line.key
            if let index = keys.firstIndex(of: key) {
                guard lines[index] != line else { continue }
                lines[index] = line
            } else {
                lines.append(line)
                keys.append(key)
            }
            hasChanged = true
        }
        if lines.count > most {
            // Not again for each that follows.
            lines = CookieBound.kept(lines, most: most * 9 / 10)
            keys = lines.map(\.key)
        }
        if hasChanged { version += 1 }
        return hasChanged
    }
}

extension CookieLine {
    /// What no two cookies of libcurl's jar have in common: the domain, whether those below are meant, the path and the name.
    var key: [UInt8] {
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

    /// The same cookie, long expired: what takes its place and is not there.
    var expired: CookieLine {
        var columns = bytes.split(separator: 0x09, maxSplits: 6, omittingEmptySubsequences: false)
        guard columns.count == 7 else { return self }
        columns[4] = [0x31]
        return CookieLine([UInt8](columns.joined(separator: [0x09])))
    }

    /// Whether it is over at a time, in seconds since 1970.
    func hasExpired(at seconds: Int64) -> Bool {
        let columns = bytes.split(separator: 0x09, maxSplits: 5, omittingEmptySubsequences: false)
        guard columns.count == 6, let expires = Int64(String(decoding: columns[4], as: UTF8.self)) else { return false }
        return expires != 0 && expires <= seconds
    }
}
