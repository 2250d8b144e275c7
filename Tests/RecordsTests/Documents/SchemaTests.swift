import Expectations
import Foundation
import Reachability
import RecordSamples
import Testing

@testable import Records

/// The agreement of the schema with the written records.
@Suite struct SchemaTests {
    typealias Object = [String: Any]

    static func schema() throws -> Object {
        try #require(try JSONSerialization.jsonObject(with: Data(Schema.encode())) as? Object)
    }

    @Test func `every reference in the schema resolves`() throws {
        let schema = try Self.schema()
        let definitions = try #require(schema["$defs"] as? Object)
        var missing: [String] = []
        func look(_ value: Any) {
            if let object = value as? Object {
                if let reference = object["$ref"] as? String, definitions[String(reference.dropFirst("#/$defs/".count))] == nil {
                    missing.append(reference)
                }
                object.values.forEach(look)
            } else if let array = value as? [Any] {
                array.forEach(look)
            }
        }
        look(schema)
        expectEqual(missing, [])
        expectEqual((schema["anyOf"] as? [Any])?.count, Record.Kind.allCases.count + 1 + Schema.documents.count)
    }

    @Test(
        arguments: Samples.oneOfEach + [
            Samples.probe(failed: true), Samples.server(0, "[::1]:1", .unknown, initial: true),
            Samples.server(addresses: Samples.addresses),
        ])
    func `records have the keys and types of their schema`(event: MonitorEvent) throws {
        let record = Record(event: event, seq: 4, superseded: 1)
        let value = try JSONSerialization.jsonObject(with: Data(Samples.encoder.encode(record)))
        try expectEqual(mistakes(value, definition: record.kind.rawValue), [])
    }

    @Test func `the status document has the keys and types of its schema`() throws {
        guard case .server(_, let target) = Samples.server() else { return }
        let path = try RecordEncoderTests.update(Samples.hello)
        for canary in [nil, target] {
            let document = StatusDocument(moment: Samples.moment(9), path: path, targets: [target], canary: canary)
            let value = try JSONSerialization.jsonObject(with: Data(document.encode(with: Samples.encoder)))
            try expectEqual(mistakes(value, definition: "status"), [])
        }
    }

    @Test func `the document of probe has the keys and types of its schema`() throws {
        var answered = ProbeStatistics(Samples.endpoint("192.0.2.9:22"))
        for event in [Samples.probe(), Samples.probe(failed: true), Samples.probe()] {
            if case .probe(_, let report) = event { answered.add(report) }
        }
        for target in [answered, ProbeStatistics(Samples.endpoint("a:1"))] {
            let document = ProbeSummary(moment: Samples.moment(9), targets: [target])
            let value = try JSONSerialization.jsonObject(with: Data(document.encode()))
            try expectEqual(mistakes(value, definition: "probe_summary"), [])
        }
    }

    @Test(arguments: [
        WhySamples.silent, WhySamples.up, WhySamples.partial, WhySamples.path, WhySamples.unsatisfied, WhySamples.redirected,
    ])
    func `the document of why has the keys and types of its schema`(evidence: DiagnosisEvidence) throws {
        let document = WhyDocument(moment: Samples.moment(9), evidence: evidence)
        let value = try JSONSerialization.jsonObject(with: Data(document.encode()))
        try expectEqual(mistakes(value, definition: "why"), [])
        let list = Array(WhyDocument.listStart(Samples.moment(9)).utf8) + document.encode() + Array(WhyDocument.listEnd.utf8)
        let several = try JSONSerialization.jsonObject(with: Data(list))
        try expectEqual(mistakes(several, definition: "why_targets"), [])
        let canary = WhyDocument(moment: Samples.moment(9), evidence: evidence, canary: WhySamples.silent.update)
        let other = try JSONSerialization.jsonObject(with: Data(canary.encode()))
        try expectEqual(mistakes(other, definition: "why"), [])
    }

    @Test func `the schema check finds a missing key and a wrong type`() throws {
        try expectEqual(mistakes(["v": 1, "ts": "x", "path": 7, "canary": NSNull()], definition: "status").count, 2)
    }

    /// Returns the differences between `value` and a definition, in both directions. It supports the part of JSON Schema that the
    /// program uses.
    private func mistakes(_ value: Any, definition: String) throws -> [String] {
        let definitions = try #require(try Self.schema()["$defs"] as? Object)
        func check(_ value: Any, _ node: Object, _ place: String) -> [String] {
            if let reference = node["$ref"] as? String {
                let name = String(reference.dropFirst("#/$defs/".count))
                return check(value, definitions[name] as? Object ?? [:], place)
            }
            if let choices = node["anyOf"] as? [Object] {
                let results = choices.map { check(value, $0, place) }
                return results.contains([]) ? [] : results.min { $0.count < $1.count } ?? []
            }
            if let constant = node["const"] as? String {
                return value as? String == constant ? [] : ["\(place): not \(constant)"]
            }
            if let words = node["enum"] as? [String], !words.contains(value as? String ?? "") { return ["\(place): \(value)"] }
            switch node["type"] as? String {
            case "object":
                guard let object = value as? Object else { return ["\(place): no object"] }
                guard let properties = node["properties"] as? Object else { return [] }
                let required = Set(node["required"] as? [String] ?? [])
                let unknown = object.keys.filter { properties[$0] == nil }.map { "\(place).\($0): not in the schema" }
                let missing = required.filter { object[$0] == nil }.map { "\(place).\($0): missing" }
                return unknown + missing
                    + object.flatMap { check($0.value, properties[$0.key] as? Object ?? [:], "\(place).\($0.key)") }
            case "array":
                guard let array = value as? [Any] else { return ["\(place): no array"] }
                return array.flatMap { check($0, node["items"] as? Object ?? [:], "\(place)[]") }
            case "string": return value is String ? [] : ["\(place): no string"]
            case "integer", "number": return value is NSNumber ? [] : ["\(place): no number"]
            case "boolean": return value is Bool ? [] : ["\(place): no boolean"]
            case "null": return value is NSNull ? [] : ["\(place): not null"]
            default: return []
            }
        }
        return check(value, try #require(definitions[definition] as? Object), definition)
    }
}
