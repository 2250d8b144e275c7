import Expectations
import Foundation
import Reachability
import RecordSamples
import Testing

@testable import Console
@testable import Records

/// The exact text of records. Other programs read it, so it may only be extended.
@Suite struct RecordEncoderTests {
    static let eth0 = #"""
        {"name":"eth0","index":2,"type":"wired","virtual":false,"level":"routable","expensive":false,"addresses":["192.0.2.7/24","fe80::7/64"]}
        """#
    static let lo = #"""
        {"name":"lo","index":1,"type":"loopback","virtual":true,"level":"carrier","expensive":false,"addresses":["127.0.0.1/8"]}
        """#

    @Test func `hello contains the settled path and the targets`() {
        let expected =
            #"{"v":1,"seq":0,"ts":"2026-08-02T12:00:00.000Z","mono_ns":5000000000,"type":"hello","version":"0.1.0","#
            + #""boot_id":"b0071d","netns":{"name":null,"inode":4026531840},"path":{"status":"satisfied","interface":"eth0","#
            + #""interface_v4":"eth0","interface_v6":"eth0","interface_type":"wired","underlying":null,"ipv4":true,"ipv6":true,"#
            + #""dns":true,"dns_servers":[{"address":"192.0.2.53","interface":"eth0"}],"expensive":false,"constrained":false,"#
            + #""gateways":["192.0.2.1","fe80::1%eth0"],"#
            + #""interfaces":[\#(Self.eth0),\#(Self.lo)],"cause":null,"reasons":[],"suppressed":0,"consistent":true},"#
            + #""targets":["192.0.2.9:22"]}"#
        expectEqual(Samples.text(Samples.hello, seq: 0), expected)
    }

    @Test func `an unsatisfied path has its cause with sorted evidence`() {
        let expected =
            #"{"v":1,"seq":7,"ts":"2026-08-02T12:00:01.000Z","mono_ns":6000000000,"type":"path","status":"unsatisfied","#
            + #""interface":null,"interface_v4":null,"interface_v6":null,"interface_type":null,"underlying":null,"ipv4":false,"#
            + #""ipv6":false,"dns":true,"dns_servers":[{"address":"192.0.2.53","interface":null}],"expensive":false,"#
            + #""constrained":false,"gateways":[],"interfaces":[{"name":"eth0","#
            + #""index":2,"type":"wired","virtual":false,"level":"no-carrier","expensive":false,"addresses":[]},\#(Self.lo)],"#
            + #""cause":{"layer":"link","code":"no-carrier","detail":"eth0 has no carrier","#
            + #""evidence":{"flags":4099,"interface":"eth0"}},"reasons":["interface-changed"],"suppressed":3,"#
            + #""consistent":true,"superseded":2}"#
        expectEqual(Samples.text(Samples.path(suppressed: 3), seq: 7, superseded: 2), expected)
    }

    @Test func `a target that is up has all keys`() {
        let expected =
            #"{"v":1,"seq":1,"ts":"2026-08-02T12:00:01.000Z","mono_ns":6000000000,"type":"target","target":"192.0.2.9:22","#
            + #""status":"up","cause":null,"since":"2026-08-02T12:00:01.000Z","rtt_ms":1.25,"response_ms":1.3,"#
            + #""phases_ms":{"dns":null,"connect":1.3,"tls":null,"first_byte":null,"transfer":null},"#
            + #""certificate_days_left":null,"address":"192.0.2.9","family":4,"#
            + #""interface":"eth0","interface_type":"wired","addresses":[],"id":null,"name":null,"group":null,"labels":null,"phase":null,"pending":false,"flapping":false,"paused":false,"initial":false}"#
        expectEqual(Samples.text(Samples.server()), expected)
    }

    @Test func `the addresses of a target that are all probed have each a status, a cause and a time`() {
        let text = Samples.text(Samples.server(addresses: Array(Samples.addresses.prefix(2))))
        let expected =
            #""addresses":[{"address":"192.0.2.9","family":4,"status":"up","cause":null,"since":"2026-08-02T12:00:01.000Z"},"#
            + #"{"address":"192.0.2.10","family":4,"status":"down","cause":{"layer":"tcp","code":"refused""#
        #expect(text.contains(expected), "\(text)")
    }

    @Test func `a target with a failure that is pending has its cause and its status`() {
        let text = Samples.text(Samples.server(pending: Samples.refused))
        #expect(
            text.contains(#""status":"up","cause":{"layer":"tcp","code":"refused""#) && text.contains(#""pending":true"#),
            "\(text)")
    }

    @Test func `a target that is unknown has nulls`() {
        let expected =
            #"{"v":1,"seq":1,"ts":"2026-08-02T12:00:01.000Z","mono_ns":6000000000,"type":"target","target":"192.0.2.9:22","#
            + #""status":"unknown","cause":null,"since":"2026-08-02T12:00:01.000Z","rtt_ms":null,"response_ms":null,"#
            + #""phases_ms":{"dns":null,"connect":null,"tls":null,"first_byte":null,"transfer":null},"#
            + #""certificate_days_left":null,"address":null,"family":null,"#
            + #""interface":null,"interface_type":null,"addresses":[],"id":null,"name":null,"group":null,"labels":null,"phase":null,"pending":false,"flapping":false,"paused":false,"initial":true}"#
        expectEqual(Samples.text(Samples.server(0, "192.0.2.9:22", .unknown, initial: true)), expected)
    }

    @Test func `a failed probe has its cause`() {
        let expected =
            #"{"v":1,"seq":1,"ts":"2026-08-02T12:00:01.000Z","mono_ns":6000000000,"type":"probe","target":"192.0.2.9:22","#
            + #""ok":false,"rtt_ms":null,"response_ms":null,"address":"192.0.2.9","phases_ms":{"dns":null,"connect":1.3,"tls":null,"#
            + #""first_byte":null,"transfer":null},"certificate_days_left":null,"#
            + #""cause":{"layer":"tcp","code":"refused","detail":"192.0.2.9 refuses port 22","#
            + #""evidence":{"errno":"ECONNREFUSED"}},"id":null,"name":null,"group":null,"labels":null,"phase":null}"#
        expectEqual(Samples.text(Samples.probe(failed: true)), expected)
    }

    @Test func `an incident has its subject, its cause, its first ten targets and their number`() {
        let expected =
            #"{"v":1,"seq":1,"ts":"2026-08-02T12:00:01.000Z","mono_ns":6000000000,"type":"incident","#
            + #""incident":"1785672001000-3","kind":"fault","state":"open","into":null,"from":"2026-08-02T12:00:01.000Z","to":null,"scope":"local","#
            + #""subject":{"kind":"interface","name":"eth0"},"cause":{"layer":"link","code":"no-carrier","#
            + #""detail":"eth0 has no carrier","evidence":{"flags":4099,"interface":"eth0"}},"target_count":2,"#
            + #""targets":["192.0.2.0:22","192.0.2.1:22"],"severity":null,"acknowledged":null,"recorded":null,"id":null,"name":null,"group":null,"labels":null}"#
        expectEqual(Samples.text(Samples.incident(2)), expected)
        let over = Samples.text(Samples.incident(5_000, subject: .init(.interface, nil), over: 61))
        #expect(over.contains(#""ts":"2026-08-02T12:01:01.000Z""#))
        #expect(over.contains(#""kind":"fault","state":"over","into":null,"from":"2026-08-02T12:00:01.000Z""#))
        #expect(over.contains(#""to":"2026-08-02T12:01:01.000Z""#) && over.contains(#""name":null"#))
        #expect(over.contains(#""target_count":5000"#) && over.contains(#""192.0.2.9:22"]"#))
        let merged = Samples.text(Samples.incident(kind: .flapping, subject: .init(.host, "192.0.2.0"), over: 61, into: "17-4"))
        #expect(merged.contains(#""kind":"flapping","state":"merged","into":"17-4","from""#))
        #expect(merged.contains(#""subject":{"kind":"host","name":"192.0.2.0"}"#))
    }

    @Test func `resync and gap have their reasons`() {
        expectEqual(
            Samples.text(.resync(.dumpInterrupted, Samples.moment(2))),
            #"{"v":1,"seq":1,"ts":"2026-08-02T12:00:02.000Z","mono_ns":7000000000,"type":"resync","#
                + #""reason":"dump_interrupted"}"#)
        expectEqual(
            Samples.text(.gap(from: Samples.moment(3), to: Samples.moment(60))),
            #"{"v":1,"seq":1,"ts":"2026-08-02T12:01:00.000Z","mono_ns":65000000000,"type":"gap","reason":"suspend","#
                + #""from":"2026-08-02T12:00:03.000Z","to":"2026-08-02T12:01:00.000Z"}"#)
    }

    @Test func `the status document contains complete target records`() throws {
        let document = StatusDocument(moment: Samples.moment(9), path: try Self.update(Samples.hello), targets: [])
        let text = String(decoding: document.encode(with: Samples.encoder), as: UTF8.self)
        #expect(text.hasPrefix(#"{"v":1,"ts":"2026-08-02T12:00:09.000Z","path":{"status":"satisfied","#))
        #expect(text.hasSuffix(#""consistent":true},"targets":[],"canary":null}"#))
    }

    static func update(_ event: MonitorEvent) throws -> PathUpdate {
        guard case .path(let update) = event else { throw CancellationError() }
        return update
    }

    /// The keys of docs/command-line.md by record type.
    static let documentedKeys: [Record.Kind: Set<String>] = [
        .hello: ["version", "boot_id", "netns", "path", "targets"],
        .path: [
            "status", "interface", "interface_v4", "interface_v6", "interface_type", "underlying", "ipv4", "ipv6", "dns",
            "dns_servers", "expensive", "constrained", "gateways", "interfaces", "cause", "reasons", "suppressed", "consistent",
        ],
        .target: [
            "target", "status", "cause", "since", "rtt_ms", "response_ms", "phases_ms", "certificate_days_left", "address",
            "family",
            "interface",
            "addresses", "interface_type", "id", "name",
            "group",
            "labels", "phase", "pending", "flapping", "paused", "initial",
        ],
        .probe: [
            "target", "ok", "rtt_ms", "response_ms", "address", "phases_ms", "certificate_days_left", "cause", "id", "name",
            "group",
            "labels", "phase",
        ],
        .incident: [
            "incident", "kind", "state", "into", "from", "to", "scope", "subject", "cause", "target_count", "targets",
            "severity", "acknowledged",
            "recorded",
            "id", "name", "group", "labels",
        ],
        .resync: ["reason"],
        .gap: ["reason", "from", "to"],
    ]

    @Test(arguments: Samples.oneOfEach)
    func `every record is one line of JSON with every documented key`(event: MonitorEvent) throws {
        let record = Record(event: event, seq: 4)
        let bytes = Samples.encoder.encode(record)
        #expect(!bytes.contains(UInt8(ascii: "\n")))
        let object = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
        let expected = try #require(Self.documentedKeys[record.kind]).union(["v", "seq", "ts", "mono_ns", "type"])
        expectEqual(Set(object.keys), expected)
        expectEqual(object["type"] as? String, record.kind.rawValue)
    }

    @Test func `interface names cannot break the JSON line`() throws {
        let evil = NetworkInterface(
            name: "e\u{1b}[2J\"\\\n\u{7f}é", index: 9, type: .other, isVirtual: false, isExpensive: false, level: .off,
            addresses: [])
        let path = NetworkPath(status: .satisfied, interface: evil, interfaceV4: evil, interfaces: [evil])
        let text = Samples.text(Samples.path(path))
        #expect(text.contains(#""interface":"e\u001b[2J\"\\\n\u007fé""#))
        let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        expectEqual(object["interface"] as? String, evil.name)
    }

    /// The names of a target in a configuration, and the keys of its records.
    static let identities: [(TargetIdentity?, String)] = [
        (nil, #""id":null,"name":null,"group":null,"labels":null"#),
        (TargetIdentity(id: "office"), #""id":"office","name":null,"group":null,"labels":null"#),
        (
            TargetIdentity(id: "office", name: "The \"office\"", group: "North", labels: ["team": "a", "site": "Köln"]),
            #""id":"office","name":"The \"office\"","group":"North","labels":{"site":"Köln","team":"a"}"#
        ),
    ]

    @Test(arguments: identities) func `the records of a service have the names of its configuration`(
        identity: TargetIdentity?, keys: String
    ) {
        func text(_ event: MonitorEvent) -> String {
            String(decoding: Samples.encoder.encode(Record(event: event, identity: identity)), as: UTF8.self)
        }
        #expect(
            text(Samples.server(1)).contains(
                #""interface_type":"wired","addresses":[],\#(keys),"phase":null,"pending":false,"flapping""#))
        #expect(text(Samples.probe()).hasSuffix(#"\#(keys),"phase":null}"#))
        #expect(text(Samples.incident(1)).hasSuffix(#""recorded":null,\#(keys)}"#))
    }

    @Test(arguments: [true, false]) func `an incident of a service says whether the history has it`(isRecorded: Bool) {
        let record = Record(event: Samples.incident(), isRecorded: isRecorded)
        #expect(String(decoding: Samples.encoder.encode(record), as: UTF8.self).contains(#""recorded":\#(isRecorded),"id":null"#))
    }

    @Test func `the time in which a service did not run is a gap`() {
        let record = Record(event: .gap(from: Samples.moment(0), to: Samples.moment(60)), seq: 1, gapReason: .stopped)
        let expected =
            #"{"v":1,"seq":1,"ts":"2026-08-02T12:01:00.000Z","mono_ns":65000000000,"type":"gap","reason":"stopped","#
            + #""from":"2026-08-02T12:00:00.000Z","to":"2026-08-02T12:01:00.000Z"}"#
        expectEqual(String(decoding: Samples.encoder.encode(record), as: UTF8.self), expected)
        var lines = PlainLines(header: Samples.header, style: TextStyle())
        #expect(lines.line(record).hasSuffix("gap    not running from 2026-08-02T12:00:00.000Z to 2026-08-02T12:01:00.000Z"))
    }
}
