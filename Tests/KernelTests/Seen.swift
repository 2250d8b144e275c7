import Foundation
import NetworkLab
import Reachability

/// A path as an observer reports it: a line for comparison, and further values for tests.
struct Seen: CustomStringConvertible {
    /// `satisfied v0 wired 4+6 via 10.1.0.2 fe80::1%v0`, `satisfied tun0 tunnel over v0 4`, `unsatisfied link/no-carrier`.
    let line: String
    let reasons: Set<String>
    let interfaces: [Interface]
    let suppressed: Int
    let hasDNS: Bool
    let isConsistent: Bool
    let detail: String
    let evidence: [String: String]

    struct Interface: Hashable {
        var name: String
        var index: Int
        var type: String
        var isVirtual: Bool
        var level: String
        var addresses: [String]
    }

    var order: [String] { interfaces.map(\.name) }
    func interface(_ name: String) -> Interface? { interfaces.first { $0.name == name } }
    func level(_ name: String) -> String? { interface(name)?.level }
    /// `TYPE` or `virtual TYPE`.
    func medium(_ name: String) -> String? { interface(name).map { ($0.isVirtual ? "virtual " : "") + $0.type } }

    var description: String {
        let rows = interfaces.map { "\($0.name):\($0.level):\($0.addresses.joined(separator: ","))" }.joined(separator: " ")
        return "\(line)  (\(reasons.sorted().joined(separator: " ")); suppressed \(suppressed); \(rows))"
    }

    private static func line(
        status: String, interface: String?, type: String?, underlying: String?, v4: String?, v6: String?, gateways: [String],
        cause: String?
    ) -> String {
        guard let interface else { return "\(status) \(cause ?? "without a cause")" }
        var words = [status, interface, type ?? "?"]
        if let underlying { words += ["over", underlying] }
        // The second family's interface is named if it differs.
        switch (v4, v6) {
        case (nil, nil): words.append("no family")
        case (_?, nil): words.append("4")
        case (nil, _?): words.append("6")
        case (let one?, let other?): words.append(one == other ? "4+6" : "4+6:\(other)")
        }
        if !gateways.isEmpty { words += ["via"] + gateways }
        if let cause { words.append("although \(cause)") }
        return words.joined(separator: " ")
    }

    /// A path that the library published.
    init(_ update: PathUpdate) {
        let path = update.path
        line = Seen.line(
            status: path.status.rawValue, interface: path.interface?.name, type: path.interface?.type.rawValue,
            underlying: path.underlying?.name, v4: path.interfaceV4?.name, v6: path.interfaceV6?.name,
            gateways: path.gateways.map(\.description), cause: path.cause.map { "\($0.layer.rawValue)/\($0.code.rawValue)" })
        reasons = Set(update.reasons.map(\.rawValue))
        interfaces = path.interfaces.map {
            Interface(
                name: $0.name, index: Int($0.index), type: $0.type.rawValue, isVirtual: $0.isVirtual, level: $0.level.rawValue,
                addresses: $0.addresses.map(\.description))
        }
        suppressed = update.coalescedEventCount
        hasDNS = path.supportsDNS
        isConsistent = path.isConsistent
        detail = path.cause?.detail ?? ""
        evidence = (path.cause?.evidence ?? [:]).mapValues {
            switch $0 {
            case .text(let text): text
            case .number(let number): "\(number)"
            case .flag(let flag): "\(flag)"
            case .list(let texts): texts.joined(separator: ",")
            }
        }
    }

    /// A path from a record of the program. - Throws: if a key that docs/command-line.md promises is missing.
    init(record: [String: Any]) throws {
        func value<Value>(_ key: String, _ type: Value.Type = Value.self) throws -> Value {
            guard let value = record[key] as? Value else { throw LabError("no \(key) of type \(type) in \(record)") }
            return value
        }
        func optional(_ key: String) throws -> String? {
            guard let value = record[key] else { throw LabError("no \(key) in \(record)") }
            if value is NSNull { return nil }
            guard let text = value as? String else { throw LabError("\(key) is no text in \(record)") }
            return text
        }
        let cause = record["cause"] as? [String: Any]
        guard cause != nil || record["cause"] is NSNull else { throw LabError("no cause in \(record)") }
        let (v4, v6) = (try optional("interface_v4"), try optional("interface_v6"))
        guard try value("ipv4") == (v4 != nil), try value("ipv6") == (v6 != nil) else {
            throw LabError("families and their interfaces differ in \(record)")
        }
        line = Seen.line(
            status: try value("status"), interface: try optional("interface"), type: try optional("interface_type"),
            underlying: try optional("underlying"), v4: v4, v6: v6, gateways: try value("gateways"),
            cause: cause.map { "\($0["layer"] ?? "?")/\($0["code"] ?? "?")" })
        reasons = Set(try value("reasons", [String].self))
        interfaces = try value("interfaces", [[String: Any]].self).map { row in
            guard let name = row["name"] as? String, let index = row["index"] as? Int, let type = row["type"] as? String,
                let isVirtual = row["virtual"] as? Bool, let level = row["level"] as? String, row["expensive"] is Bool,
                let addresses = row["addresses"] as? [String]
            else { throw LabError("not an interface: \(row)") }
            return Interface(name: name, index: index, type: type, isVirtual: isVirtual, level: level, addresses: addresses)
        }
        suppressed = try value("suppressed")
        hasDNS = try value("dns")
        isConsistent = try value("consistent")
        detail = cause?["detail"] as? String ?? ""
        evidence = (cause?["evidence"] as? [String: Any] ?? [:]).mapValues { "\($0)" }
    }
}
