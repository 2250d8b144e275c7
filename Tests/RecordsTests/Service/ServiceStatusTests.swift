import Console
import Expectations
import Foundation
import Reachability
import RecordSamples
import Testing

@testable import Records

/// The status of a service, as it comes over its socket.
@Suite struct ServiceStatusTests {
    private static let named = TargetIdentity(id: "office", name: "The \"office\", [1]", group: nil, labels: ["site": "{a}"])

    /// A page of the document, with a key that this version does not know.
    private func page(
        _ targets: [(MonitorEvent, TargetIdentity?)], next: String? = nil, path: Bool = true, canary: ServerUpdate? = nil
    ) throws -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("v", 1)
            writer.member("ts", Timestamp.text(Samples.moment(9)))
            writer.key("path")
            if path, case .path(let update) = Samples.hello {
                writer.object { RecordEncoder.write(keysOf: update, to: &$0) }
            } else {
                writer.null()
            }
            writer.key("targets")
            writer.array { writer in
                for (number, (event, identity)) in targets.enumerated() {
                    Samples.encoder.write(Record(event: event, seq: number, identity: identity), to: &writer)
                }
            }
            RecordEncoder.write(canary: canary, to: &writer)
            writer.member("instance", "edge-07")
            writer.member("later", ["[", "targets", "]"])
            writer.member("next", next)
        }
        return writer.bytes
    }

    @Test func `the pages are one document, for programs and for people`() throws {
        guard case .server(_, let canary) = Samples.server(7, "http://canary.example/", .up) else { return }
        let first: [(MonitorEvent, TargetIdentity?)] = [
            (Samples.server(0, "192.0.2.0:22", .down, cause: Samples.refused), Self.named), (Samples.server(1), nil),
        ]
        let second: [(MonitorEvent, TargetIdentity?)] = [(Samples.server(2, "b:1"), TargetIdentity(name: "B"))]
        var status = ServiceStatus()
        try status.add(page(first, next: "3.0.1"))
        expectEqual(status.next, "3.0.1")
        try status.add(page(second, canary: canary))
        expectEqual(status.next, nil)
        let whole = try #require(try JSONSerialization.jsonObject(with: Data(status.json)) as? [String: Any])
        let targets = try #require(whole["targets"] as? [[String: Any]])
        expectEqual(targets.map { $0["target"] as? String }, ["192.0.2.0:22", "192.0.2.9:22", "b:1"])
        expectEqual(targets[0]["name"] as? String, Self.named.name)
        #expect(whole["next"] is NSNull && whole["canary"] is [String: Any])
        expectEqual((whole["later"] as? [String])?.count, 3)

        let reading = try #require(status.reading(FailureRule()))
        expectEqual(reading.instance, "edge-07")
        expectEqual(reading.names, ["The \"office\", [1]", "192.0.2.9:22", "B"])
        expectEqual(reading.document.verdict, .doesNotHold)
        var text = StatusText(document: reading.document, style: TextStyle())
        (text.names, text.instance) = (reading.names, reading.instance)
        let lines = text.lines
        expectEqual(lines.first, "service edge-07")
        let cause = "tcp/refused: \(Samples.refused.detail)"
        #expect(lines.contains { $0.hasPrefix("  x The \"office\", [1]  down  \(cause)") }, "\(lines)")
        #expect(lines.contains { $0.contains("+ http://canary.example/") }, "\(lines)")
        // The service may have asked the name servers.
        #expect(!lines.contains { $0.contains("none of them was asked") })
    }

    @Test func `a service without a path has no text, and one without targets has its path`() throws {
        var status = ServiceStatus()
        try status.add(page([], path: false))
        #expect(status.reading(FailureRule()) == nil)
        status = ServiceStatus()
        try status.add(page([]))
        expectEqual(status.reading(FailureRule())?.document.verdict, .holds)
        expectEqual(status.json, try page([]))
    }

    @Test(
        arguments: [
            ("{}", nil), ("[]", nil), ("", nil), (#"{"targets":{}}"#, nil), (#"{"a":{"targets":[1]}}"#, nil),
            (#"{"targets":[1"#, nil),
            (#"{"targets":[]}"#, []), (#"{"targets" : [ ]}"#, []),
            (#"{"a":"targets","targets":[1, [2,3] ,{"b":[","]}]}"#, ["1", "[2,3] ", #"{"b":[","]}"#]),
            (#"{"\"targets":[9],"targets":["\\","]\""]}"#, [#""\\""#, #""]\"""#]),
        ] as [(String, [String]?)])
    func `the elements of a list are found by its structure`(text: String, elements: [String]?) {
        let bytes = Array(text.utf8)
        expectEqual(JSONList(in: bytes, member: "targets")?.elements.map { String(decoding: bytes[$0], as: UTF8.self) }, elements)
    }

    @Test(arguments: ["", "{}", #"{"targets":[]}"#, #"{"ts":1,"instance":"a","targets":[]}"#])
    func `another document is refused`(text: String) {
        var status = ServiceStatus()
        #expect(throws: ServiceStatus.Malformed.self) { try status.add(Array(text.utf8)) }
    }
}
