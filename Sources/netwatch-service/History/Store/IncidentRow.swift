import Console
import FoundationEssentials
import GRDB
import Reachability

/// An incident as a row of the database. Moments are kept as milliseconds of the wall clock.
extension Incident {
    private static func milliseconds(_ moment: Moment) -> Int64 { moment.wallClockNanoseconds / 1_000_000 }

    /// Inserts or replaces the incident. The identifier stays the same from its start to its end.
    ///
    /// - Parameters:
    ///   - database: the database.
    ///   - members: the numbers of its targets, which join those of its earlier states. If there are none, they are those of ``targets``.
    /// - Throws: the errors of the database.
    func write(to database: Database, of members: TargetSet = TargetSet()) throws {
        let began = Self.milliseconds(began)
        var writer = JSONWriter()
        writer.array { array in for target in targets { array.value(target.text) } }
        let texts = String(decoding: writer.bytes, as: UTF8.self)
        try database.execute(
            sql: """
                INSERT OR REPLACE INTO incident (\(Self.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                id, began, ended.map(Self.milliseconds), scope.rawValue, subject.kind.rawValue, subject.name,
                CauseJSON.text(cause), targetCount, texts, kind.rawValue, state.rawValue, into, severity?.rawValue,
            ])
        try write(members.isEmpty ? try listedNumbers(database) : members, since: began, to: database)
    }

    /// The maximum number of members that have a row each.
    private static let rowLimit = 10

    private func write(_ members: TargetSet, since began: Int64, to database: Database) throws {
        let data = try Data.fetchOne(database, sql: "SELECT targets FROM members WHERE id = ?", arguments: [id])
        guard data != nil || members.count > Self.rowLimit else {
            for number in members.numbers {
                try database.execute(
                    sql: "INSERT OR IGNORE INTO member (target, began, id) VALUES (?, ?, ?)", arguments: [number, began, id])
            }
            return
        }
        let earlier = data.flatMap { TargetSet(bytes: [UInt8]($0)) } ?? TargetSet()
        var all = earlier
        all.formUnion(members)
        guard all != earlier else { return }
        try database.execute(
            sql: "INSERT OR REPLACE INTO members (id, began, targets) VALUES (?, ?, ?)", arguments: [id, began, Data(all.bytes)])
    }

    /// The numbers of the listed targets.
    private func listedNumbers(_ database: Database) throws -> TargetSet {
        var names = Set(targets.map(\.text))
        if subject.kind == .target, let name = subject.name { names.insert(name) }
        var numbers = TargetSet()
        for name in names {
            let found = try Int.fetchAll(database, sql: "SELECT number FROM target WHERE text = ?", arguments: [name])
            for number in found where 0..<TurnCoder.targetLimit ~= number { numbers.insert(number) }
        }
        return numbers
    }

    /// The latest time in milliseconds since 1970, in the year 2116. Differences of two moments then have no overflow.
    private static let timeLimit = Int64.max / 2_000_000

    static let columns = "id, began, ended, scope, kind, name, cause, target_count, targets, type, state, merged_into, severity"

    /// Reads a row of ``columns``; `nil` if its values are those of no incident.
    init?(_ row: Row) {
        guard let id = row.text(0), let began = row.integer(1), let scope = row.text(3).flatMap(Scope.init),
            let kind = row.text(4).flatMap(Subject.Kind.init), let text = row.text(6),
            let cause = CauseJSON.cause(text), let count = row.integer(7), let list = row.text(8),
            let names = try? JSONDecoder().decode([String].self, from: Data(list.utf8))
        else { return nil }
        func moment(_ time: Int64) -> Moment {
            Moment(monotonicNanoseconds: 0, wallClockNanoseconds: min(max(time, 0), Self.timeLimit) * 1_000_000)
        }
        let ended = row.integer(2).map(moment)
        // Rows of earlier schemas have no state, and a withdrawal of the history can change an end.
        let state = row.text(10).flatMap(State.init).flatMap { $0 == .open ? nil : $0 } ?? .over
        self.init(
            id: id, kind: row.text(9).flatMap(Kind.init) ?? .fault, state: ended == nil ? .open : state,
            into: ended == nil ? nil : row.text(11), scope: scope, subject: Subject(kind, row.text(5)), cause: cause,
            targetCount: Int(clamping: count), targets: names.prefix(Self.listedTargets).compactMap { try? Endpoint($0) },
            severity: row.text(12).flatMap(Severity.init),
            began: moment(began), ended: ended, moment: ended ?? moment(began))
    }
}

/// The JSON of a cause, with the keys of the record.
enum CauseJSON {
    static func text(_ cause: Cause) -> String {
        var writer = JSONWriter()
        writer.object { object in
            object.key("layer")
            object.value(cause.layer.rawValue)
            object.key("code")
            object.value(cause.code.rawValue)
            object.key("detail")
            object.value(cause.detail)
            object.key("evidence")
            object.object { evidence in
                for (name, value) in cause.sortedEvidence {
                    evidence.key(text: name)
                    switch value {
                    case .text(let text): evidence.value(text)
                    case .number(let number): evidence.value(number)
                    case .flag(let flag): evidence.value(flag)
                    case .list(let texts): evidence.array { array in for text in texts { array.value(text) } }
                    @unknown default: evidence.null()
                    }
                }
            }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private struct Content: Decodable {
        var layer: String
        var code: String
        var detail: String
        var evidence: [String: Value]
    }

    private enum Value: Decodable {
        case evidence(Cause.Evidence)
        case none

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let flag = try? container.decode(Bool.self) {
                self = .evidence(.flag(flag))
            } else if let number = try? container.decode(Int.self) {
                self = .evidence(.number(number))
            } else if let text = try? container.decode(String.self) {
                self = .evidence(.text(text))
            } else if let list = try? container.decode([String].self) {
                self = .evidence(.list(list))
            } else {
                self = .none
            }
        }
    }

    static func cause(_ text: String) -> Cause? {
        guard let content = try? JSONDecoder().decode(Content.self, from: Data(text.utf8)) else { return nil }
        let evidence = content.evidence.compactMapValues { value in
            if case .evidence(let evidence) = value { evidence } else { nil }
        }
        return Cause(
            Cause.Layer(rawValue: content.layer), Cause.Code(rawValue: content.code), detail: content.detail, evidence: evidence)
    }
}
